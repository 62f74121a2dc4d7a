import { describe, expect, test } from 'vitest'
import { isCounted } from '../../src/core/incoming-payment/transfer.js'
import { processesOf } from './processes.js'
import { search, told } from './search.js'
import { type TransferDecisions, transferDecisions, transfersMachine } from './transfers.js'

test('two processes count or close a transfer, never both, in every reachable state', () => {
  const found = search(processesOf(transfersMachine()))
  console.log(told(found))
  expect(found.broken).toBeUndefined()
  expect(found.complete).toBe(true)
})

const { receive, closeTransfer, transferOf } = transferDecisions

/** Returns a record that replaces another one, instead of being written once. */
function replacing<Next extends { readonly version: number }>(
  next: Next,
  before: { readonly version: number } | undefined,
): Next {
  return { ...next, version: (before?.version ?? 0) + 1 }
}

const never = 'the record of a transfer never changes'
const stays = 'what was answered of a transfer stays true'

const mistakes: readonly (readonly [
  mistake: string,
  law: string,
  decisions: Partial<TransferDecisions>,
])[] = [
  ['a transfer is refused as late without a mark', stays, { marksLate: false }],
  ['a transfer is closed without a mark', stays, { marksClosed: false }],
  [
    'a transfer that was counted replaces the mark',
    never,
    {
      receive(payment, { recorded, ...command }, now) {
        const isMarked = recorded !== undefined && !isCounted(recorded)
        return receive(payment, isMarked ? command : { ...command, recorded }, now)
      },
      transferOf: (payment, command) => replacing(transferOf(payment, command), command.recorded),
    },
  ],
  [
    'the mark replaces a transfer that was counted',
    never,
    {
      closeTransfer(payment, { recorded, ...command }, now) {
        if (!recorded || !isCounted(recorded))
          return closeTransfer(payment, { ...command, recorded }, now)
        const decision = closeTransfer(payment, command, now)
        if (decision.outcome !== 'changed') return decision
        return { ...decision, record: replacing(decision.record, recorded) }
      },
    },
  ],
]

describe('the search finds', () => {
  test.each(mistakes)('%s', (_, law, decisions) => {
    const found = search(processesOf(transfersMachine({ ...transferDecisions, ...decisions })))
    console.log(found.broken?.path.join('\n'))
    expect(found.broken?.law).toBe(law)
  })
})
