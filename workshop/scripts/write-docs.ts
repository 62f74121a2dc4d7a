import { readFileSync, writeFileSync } from 'node:fs'
import { memberTable, optionTables, settlementTable, valueTable } from './api-table.js'
import { writtenClientTable } from './client-table.js'
import { errorTable, meaningTable, publicReasonTable } from './error-table.js'
import { openApi } from './openapi.js'

/** Replaces the table of a document whose first heading cell is `heading`. */
function replaceTable(file: string, heading: string, table: string): void {
  const text = readFileSync(file, 'utf8')
  const found = new RegExp(`^\\| ${heading} \\|[\\s\\S]*?\\n(?=\\n|$)`, 'm')
  if (!found.test(text)) throw new Error(`${file} has no table with the first heading "${heading}"`)
  writeFileSync(
    file,
    text.replace(found, () => `${table}\n`),
  )
}

/** Shows the files that a document names in comments, whole. */
function replaceFiles(document: string): void {
  const text = readFileSync(document, 'utf8')
  const shown = text.replace(
    /^<!-- ([\w./-]+\.ts) -->\n```ts\n[\s\S]*?^```$/gm,
    (_, file: string) => `<!-- ${file} -->\n\`\`\`ts\n${readFileSync(file, 'utf8')}\`\`\``,
  )
  writeFileSync(document, shown)
}

replaceFiles('docs/stack.md')
writeFileSync('openapi.json', `${JSON.stringify(await openApi())}\n`)
replaceTable('docs/api.md', 'member of a wallet', memberTable())
replaceTable('docs/api.md', 'export', valueTable())
replaceTable('docs/api.md', 'of settlements', settlementTable())
for (const [name, table] of optionTables()) {
  replaceTable('docs/options.md', `option of \`${name}\``, table)
}
replaceTable('docs/errors.md', 'refusal', errorTable())
replaceTable('docs/errors.md', 'meaning of', meaningTable())
replaceTable('docs/errors.md', 'public reason of', publicReasonTable())
replaceTable('docs/clients.md', 'call', await writtenClientTable())
