import { readFileSync, writeFileSync } from 'node:fs'
import { writtenClientTable } from './client-table.js'
import { errorTable } from './error-table.js'

/** Replaces the table that begins with a heading cell in a document. */
function replaceTable(file: string, heading: string, table: string): void {
  const text = readFileSync(file, 'utf8')
  const found = new RegExp(`^\\| ${heading} \\|[\\s\\S]*?\\n(?=\\n|$)`, 'm')
  if (!found.test(text)) throw new Error(`${file} has no table that begins with "${heading}"`)
  writeFileSync(
    file,
    text.replace(found, () => `${table}\n`),
  )
}

replaceTable('docs/errors.md', 'refusal', errorTable())
replaceTable('docs/clients.md', 'call', await writtenClientTable())
