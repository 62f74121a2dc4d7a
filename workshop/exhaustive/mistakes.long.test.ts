import { describe, expect, test } from 'vitest'
import { refused } from '../../src/core/decision.js'
import type { Grant } from '../../src/core/grant/record.js'
import { derivationsOf } from '../../src/core/grant/version.js'
import {
  type GrantDecisions,
  type GrantSetting,
  grantDecisions,
  grantMachine,
  policy,
} from './grant.js'
import { processesOf } from './processes.js'
import { type Found, search } from './search.js'

/** The law that a planted mistake breaks. Prints a shortest path to it. */
function lawBrokenBy(mistake: string, { name, broken }: Found): string | undefined {
  console.log([`${name}: ${mistake}`, ...(broken?.path ?? []), `=> ${broken?.law}`].join('\n  '))
  return broken?.law
}

const { decideGrant, isActive } = grantDecisions

const lifetimeMs = policy.accessTokenLifetimeMs

const mistakes: readonly (readonly [
  mistake: string,
  law: string,
  setting: GrantSetting,
  decisions: Partial<GrantDecisions>,
])[] = [
  [
    'the command id of the last commit is forgotten',
    'a command that was carried out is not refused',
    { kind: 'poll' },
    {
      decideGrant: (grant, ...rest) => decideGrant({ ...grant, commandId: 'forgotten' }, ...rest),
    },
  ],
  [
    'a replaced token stays active in the retry window',
    'only the live token is active, until its end',
    { kind: 'at once' },
    {
      isActive: (grant, hash, now) =>
        isActive(grant, hash, now) ||
        derivationsOf(grant).some(({ from, until }) => from === hash && now < until),
    },
  ],
  [
    'a token outlives the windows of its grant',
    'only the live token is active, until its end',
    { kind: 'at once', amends: true, windows: 2 },
    {
      isActive({ expiresAt: _expiresAt, tokens = [], ...grant }, ...rest) {
        const later = tokens.map((token) => ({ ...token, expiresAt: token.issuedAt + lifetimeMs }))
        return isActive({ ...grant, tokens: later }, ...rest)
      },
    },
  ],
  [
    'a revoked token of a set stays active',
    'only the live token is active, until its end',
    { kind: 'at once', labels: ['a', 'b'] },
    {
      isActive: (grant, ...rest) => isActive(withoutRevocations(grant), ...rest),
    },
  ],
  [
    'a rotation changes all tokens of a set',
    'only the live token is rotated',
    { kind: 'at once', labels: ['a', 'b'] },
    {
      decideGrant(grant, command, ...rest) {
        const decision = decideGrant(grant, command, ...rest)
        if (command.type !== 'rotate' || decision.outcome !== 'changed') return decision
        const { tokens = [] } = decision.record
        const all = tokens.map((token) => ({ ...token, hash: `${token.hash}:new` }))
        return { ...decision, record: { ...decision.record, tokens: all } }
      },
    },
  ],
  [
    'a revoked token of a set can be rotated',
    'only the live token is rotated',
    { kind: 'at once', labels: ['a', 'b'] },
    {
      decideGrant: (grant, command, ...rest) =>
        decideGrant(
          command.type === 'rotate' ? withoutRevocations(grant) : grant,
          command,
          ...rest,
        ),
    },
  ],
  [
    'a continuation issues a token again',
    'a lost response can be repeated in the retry window',
    { kind: 'poll' },
    {
      decideGrant({ issuedAt, ...grant }, command, ...rest) {
        const known =
          command.type === 'continue' || issuedAt === undefined ? grant : { ...grant, issuedAt }
        return decideGrant(known, command, ...rest)
      },
    },
  ],
  [
    'a revoked grant can be rotated',
    'a grant that is over never changes',
    { kind: 'at once' },
    {
      decideGrant({ finalized, ...grant }, command, ...rest) {
        const known = command.type === 'rotate' || !finalized ? grant : { ...grant, finalized }
        return decideGrant(known, command, ...rest)
      },
    },
  ],
  [
    'a rotation without a nonce records nothing',
    'a recorded request succeeds once',
    { kind: 'at once', replays: 'signature' },
    { isRecorded: (of) => of === 'nonce' },
  ],
  [
    'the revocation of a token changes the key',
    'a grant records a key only with a request that this key has signed',
    { kind: 'at once', keys: true },
    {
      decideGrant(grant, command, ...rest) {
        const decision = decideGrant(grant, command, ...rest)
        if (command.type !== 'revoke-token' || decision.outcome !== 'changed') return decision
        const client = { ...decision.record.client, kid: 'second-key' }
        return { ...decision, record: { ...decision.record, client } }
      },
    },
  ],
  [
    'a rotation keeps the key of the request for the grant',
    'a grant records a key only with a request that this key has signed',
    { kind: 'at once', keys: true },
    {
      decideGrant(grant, command, ...rest) {
        const { key: _key, ...unsigned } = { key: undefined, ...command }
        return decideGrant(grant, unsigned as typeof command, ...rest)
      },
    },
  ],
  [
    'a repeat with another key is refused',
    'a lost response can be repeated in the retry window',
    { kind: 'at once', keys: true },
    {
      decideGrant(grant, command, ...rest) {
        const decision = decideGrant(grant, command, ...rest)
        const isOther =
          command.type === 'rotate' &&
          command.key !== undefined &&
          command.key.kid !== grant.client.kid
        return isOther && decision.outcome === 'unchanged'
          ? refused('token_not_managed_here', 'another key signed the rotation')
          : decision
      },
    },
  ],
]

function withoutRevocations({ tokens = [], ...grant }: Grant): Grant {
  return { ...grant, tokens: tokens.map(({ revokedAt: _revokedAt, ...token }) => token) }
}

describe('the search finds each planted mistake', () => {
  test.each(mistakes)('%s', (mistake, law, setting, decisions) => {
    const machine = grantMachine(setting, { ...grantDecisions, ...decisions })
    expect(lawBrokenBy(mistake, search(processesOf(machine)))).toBe(law)
  })
})
