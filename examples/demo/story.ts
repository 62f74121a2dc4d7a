const colourful = process.stdout.isTTY && process.env['NO_COLOR'] === undefined
let steps = 0
let current = 'of the start'

/** Prints a heading. */
export function title(text: string): void {
  console.log(`\n${paint('1', text)}\n`)
}

/** Prints the next step. */
export function step(text: string): void {
  steps += 1
  current = `${steps}, “${text}”,`
  console.log(`${paint('36', String(steps).padStart(2))}  ${text}`)
}

/** Returns the number and the text of the step that was printed last. */
export function currentStep(): string {
  return current
}

/** Prints a result of the step. */
export function tell(what: string, detail: string): void {
  console.log(`      ${paint('2', what.padEnd(17))} ${detail}`)
}

function paint(style: string, text: string): string {
  return colourful ? `\x1b[${style}m${text}\x1b[0m` : text
}
