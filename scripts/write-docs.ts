import { readFileSync, writeFileSync } from 'node:fs'
import { errorTable } from './error-table.js'

/** Puts what is derived from the code into the documents: the table of refusals. */
const file = 'docs/errors.md'
const text = readFileSync(file, 'utf8')
writeFileSync(file, text.replace(/\| refusal \|[\s\S]*?\n(?=\n|$)/, `${errorTable()}\n`))
