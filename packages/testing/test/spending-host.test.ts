import fc from 'fast-check'
import { isLong, runs } from 'open-payments-test-support/runs'
import { describe, expect, test } from 'vitest'
import { type SpendingHost, type SpendingPorts, spendingProperty } from '../src/index.js'
import { serversWallet } from '../src/spending/servers.js'
import {
  type HostMistake,
  holdMs,
  hostMistakes,
  hostScene,
  hostServers,
} from './support/host-ledger.js'

const options = { scene: hostScene, holdMs }

function searchFor(mistake: HostMistake | undefined, numRuns: number, rest: SpendingHost = {}) {
  const servers = (ports: SpendingPorts) => ({ ...hostServers(ports, mistake), ...rest })
  const parameters = { numRuns, seed: 1, endOnFailure: !isLong }
  return fc.check(spendingProperty(fc, { ...options, servers }), parameters)
}

/** What is wrong, and the history: its start, and at least a grant and a payment. */
const withHistory = (problem: RegExp) =>
  new RegExp(`^${problem.source}\n\n {5}time: \\S+Z\n {2}1\\. grant 1, approved[^]*pay USD [^]*\n$`)

describe('the ledger of a host', () => {
  test('is right after every step, with its own settlement, events and sweep', async () => {
    const { errorInstance } = await searchFor(undefined, runs(300, 10))
    expect(errorInstance).toBeNull()
  })

  const problem =
    /the account (?:holds -?\d+ for payments that need \d+|was debited -?\d+, and payments sent \d+)/
  test.skipIf(!isLong).each(hostMistakes)(
    'is found to be wrong within 200 histories: %s',
    async (mistake) => {
      const { errorInstance } = await searchFor(mistake, 200)
      expect((errorInstance as Error | null)?.message).toMatch(withHistory(problem))
    },
  )

  const twice = 'every call of mayPay holds the amount again'

  test.skipIf(!isLong)('is found to hold twice only if the confirming write fails', async () => {
    const search = (latest: number, numRuns: number) => {
      const wallet = async () => {
        const { failStore, ...others } = await serversWallet(
          (ports) => hostServers(ports, twice),
          hostScene,
          true,
        )
        return {
          ...others,
          failStore: (...[failure, write]: Parameters<NonNullable<typeof failStore>>) =>
            failStore?.(failure, Math.min(write, latest)) ?? (() => undefined),
        }
      }
      const property = spendingProperty(fc, { ...options, wallet })
      return fc.check(property, { numRuns, seed: 1, endOnFailure: true })
    }
    const found = await search(3, 200)
    expect((found.errorInstance as Error).message).toMatch(
      /while the store fails (?:before|after) write [23]: pay .*: failed,(?: swept,)? and repeated: accepted\n$/,
    )
    expect((await search(1, found.numRuns)).errorInstance).toBeNull()
  })
})

describe('a failure of the code of a host shows the history', () => {
  const failing = (): never => {
    throw new Error('no database')
  }
  test.each([
    ['close', { close: failing }, /close rejected with: no database/],
    ['problem', { problem: failing }, /problem rejected with: no database/],
    [
      'its handler of events',
      { onEvent: failing },
      /problem rejected with: the handler of events rejected: no database/,
    ],
    [
      'its settlement',
      { report: async () => undefined as never },
      /report returned undefined; expected the result of the report/,
    ],
    [
      'its sweep, which runs until nothing is left',
      { sweep: sweepsOf([{ more: true }, undefined, { more: true }, failing]) },
      /no database/,
    ],
  ])('if it is in %s', async (_, rest, problem) => {
    const { errorInstance } = await searchFor(undefined, 200, rest as SpendingHost)
    const [said = '', ...history] = (errorInstance as Error).message.split('\n')
    expect(said).toMatch(new RegExp(`^${problem.source}$`))
    expect(history.join('\n')).toMatch(/^\n {5}time: \S+Z\n {2}1\. grant 1, approved/)
  })

  test('and its shortest form has no step that does not matter', async () => {
    const servers = (ports: SpendingPorts) => ({ ...hostServers(ports), close: failing })
    const result = await fc.check(spendingProperty(fc, { ...options, servers }), { seed: 1 })
    expect((result.errorInstance as Error).message).toMatch(
      /^close rejected with: no database\n\n {5}time: \S+\n {2}1\. grant 1, approved\n.*: accepted\n$/,
    )
  })
})

/** Returns a sweep with these answers, one for each call. */
function sweepsOf(answers: readonly unknown[]) {
  const left = [...answers]
  return async () => {
    const answer = left.shift()
    return typeof answer === 'function' ? answer() : answer
  }
}
