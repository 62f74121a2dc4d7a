/** Returns the commands of each block of a shell in a Markdown document. A backslash continues a line. */
export function commandBlocksIn(document: string): readonly (readonly string[])[] {
  const blocks = [...document.matchAll(/^```sh\n([\s\S]*?)^```$/gm)]
  return blocks.map(([, code = '']) => linesOf(code.replace(/\\\n\s*/g, '')))
}

/** Returns the commands that a page shows. */
export function commandsIn(page: string): readonly string[] {
  const shown = [...page.matchAll(/<pre><code>([\s\S]*?)<\/code><\/pre>/g)]
  return shown.map(([, text = '']) =>
    text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code))),
  )
}

/** Returns the commands that `npm create` prints. */
export function nextStepsIn(printed: string): readonly string[] {
  const [, steps = ''] = /Next:\s*\n([\s\S]*?)\nIts README/.exec(printed.replaceAll('\r', '')) ?? []
  return linesOf(steps)
}

/** Replaces the servers of examples by one that runs. */
export function withValues(command: string, origin: string): string {
  return command.replace(/https:\/\/wallet\.example|http:\/\/localhost:3000/g, origin)
}

const linesOf = (text: string) =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
