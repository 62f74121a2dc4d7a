import { readFileSync } from 'node:fs'
import type { ServerOperation } from '../../src/index.js'

const page = readFileSync('docs/operations.md', 'utf8')

function sectionUnder(heading: string): string {
  const [, section = ''] = page.split(new RegExp(`^## ${heading}\n`, 'm'))
  const [text = ''] = section.split(/^## /m)
  return text
}

/** Returns the rows of a table in `docs/operations.md` by its heading. */
export function tableUnder(heading: string): string[][] {
  const lines = sectionUnder(heading)
    .split('\n')
    .filter((line) => line.startsWith('|'))
  return lines.slice(2).map((line) =>
    line
      .slice(1, -1)
      .split('|')
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
}

/** Returns the responses of every operation of a server, unless the document has their status. */
function commonUnder(server: string, documented: readonly string[]): readonly string[] {
  const [, common] = /^Every operation also returns (.*)\.$/m.exec(sectionUnder(server)) ?? []
  const answers = listed(common?.replaceAll('`', ''))
  return answers.filter((answer) => !documented.includes(answer.split(' ')[0] ?? ''))
}

export function listed(cell = ''): readonly string[] {
  return cell === '' ? [] : cell.split(', ')
}

/** An operation in the documents that is served, as the page lists it. */
export interface Promised {
  readonly document: string
  readonly operationId: string
  readonly route: string
  readonly handler: ServerOperation
  readonly documented: readonly string[]
  readonly beyond: readonly string[]
}

export const promised: readonly Promised[] = [
  'Authorization server',
  'Resource server',
  'Wallet addresses',
].flatMap((server) =>
  tableUnder(server).map(([operationId = '', route = '', handler, statuses, others]) => {
    const documented = listed(statuses)
    return {
      document: server.toLowerCase(),
      operationId,
      route,
      handler: handler as ServerOperation,
      documented,
      beyond: [...commonUnder(server, documented), ...listed(others)].toSorted(),
    }
  }),
)
