import { readFileSync } from 'node:fs'

/** The build puts the text itself instead of this module, because the library reads no files. */
export function reportsText(): string {
  return readFileSync(new URL('0001_reports.sql', import.meta.url), 'utf8')
}
