import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { servers } from './databases.js'

/** Prints before and after the tests which suites are skipped, and what enables them; at last what was recorded. */
export function setup(): () => void {
  announceSkipped()
  const report = process.env['OPENAPI'] ? recordedAnswers() : undefined
  return () => {
    report?.()
    announceSkipped()
  }
}

function announceSkipped(): void {
  const variables = {
    PostgreSQL: 'TEST_DATABASE_URL',
    Redis: 'TEST_REDIS_URL',
    MariaDB: 'TEST_MARIADB_URL',
  }
  const missing = Object.entries(servers).flatMap(([name, url]) =>
    url === undefined ? [name] : [],
  )
  if (missing.length === 0) return
  const hints = missing.map((name) => variables[name as keyof typeof variables])
  console.log(
    `Skipped are the suites that need ${missing.join(', ')}: set ${hints.join(', ')} to run them.`,
  )
}

/** Where test/support/record-answers.ts writes. Returns what prints the summary. */
function recordedAnswers(): () => void {
  const directory = mkdtempSync(join(tmpdir(), 'answers-'))
  const path = join(directory, 'answers.jsonl')
  writeFileSync(path, '')
  process.env['OPENAPI_ANSWERS'] = path
  return () => {
    const totals = new Map<string, number>()
    for (const line of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
      const [answer, count] = JSON.parse(line) as [string, number]
      totals.set(answer, (totals.get(answer) ?? 0) + count)
    }
    rmSync(directory, { recursive: true })
    const all = [...totals.values()].reduce((sum, count) => sum + count, 0)
    console.log(`${all} answers were compared with the OpenAPI documents. Beyond them:`)
    totals.delete('')
    for (const [answer, count] of [...totals].toSorted()) console.log(`${count} × ${answer}`)
  }
}
