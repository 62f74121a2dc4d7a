import { readFileSync } from 'node:fs'
import { createMarkdownRenderer, defineLoader } from 'vitepress'

/** Highlighted code as HTML. */
declare const data: string

export { data }

/** The call that makes a wallet, from an example that the tests run, without its comments. */
export default defineLoader({
  watch: ['../../../examples/first-server/server.ts'],
  async load([file = '']): Promise<string> {
    const [call = ''] = readFileSync(file, 'utf8').match(/const wallet = [\s\S]*?\n\}\)\n/) ?? []
    if (call === '') throw new Error(`${file} makes no wallet`)
    const markdown = await createMarkdownRenderer('.')
    const code = call.replaceAll(/ \/\/ .*$/gm, '')
    return markdown.render(`\`\`\`ts\n${code}\`\`\`\n`, { path: file })
  },
})
