import { isDeepStrictEqual } from 'node:util'
import type { Grant } from '../../../src/entry-core.js'
import type { TokenItem } from '../../../src/index.js'
import { differsIn, type Law, writesOf } from './law.js'

/** A grant goes from pending to approved to finalized, and a finalized grant never changes. */
export const grantsOnlyGoForward: Law = (change) =>
  writesOf<Grant>(change, 'grant').flatMap(({ before, after }) => {
    if (before === undefined) return []
    if (before.finalized !== undefined) return [`the finalized grant ${after.id} changed`]
    const lost = (['granted', 'consent', 'issuedAt'] as const).filter(
      (name) => before[name] !== undefined && after[name] === undefined,
    )
    return lost.map((name) => `the grant ${after.id} lost ${name}`)
  })

/** What was granted never changes, and is covered by what was requested. */
export const accessIsAttenuated: Law = (change) =>
  writesOf<Grant>(change, 'grant').flatMap(({ before, after }) => {
    const { granted } = after
    if (granted === undefined) return []
    if (before?.granted !== undefined) {
      // A continuation or rotation records the key that signed, and a client never becomes another.
      const { walletAddress } = before.client
      const client = { ...after.client, walletAddress }
      const changed = differsIn({ ...before, client }, after, mutable)
      return changed === undefined ? [] : [`${changed} of the grant ${after.id} changed`]
    }
    const free = [...after.requested]
    const uncovered = granted.filter((item) => {
      const index = free.findIndex((wide) => isWithin(item, wide))
      if (index >= 0) free.splice(index, 1)
      return index < 0
    })
    return uncovered.map((item) => `${JSON.stringify(item)} was granted but not requested`)
  })

/** The members of an approved grant that may change. */
const mutable = [
  'version',
  'lastEvent',
  'commandId',
  'finalized',
  'tokens',
  'derivation',
  'interaction',
  'continuation',
  'dueAt',
  'retainUntil',
  'expiresAt',
  'conditions',
  'amendments',
  'issuedAt',
]

/** A change of conditions adds an amendment that has those before, and nothing else adds one. */
export const amendmentsTellWhatChanged: Law = (change) =>
  writesOf<Grant>(change, 'grant').flatMap(({ before, after }) => {
    if (before?.granted === undefined) return []
    const known = before.amendments ?? []
    const [added, ...others] = (after.amendments ?? []).slice(known.length)
    const undone = Object.entries({ ...after.conditions, ...added?.before.conditions })
    const kept = Object.fromEntries(undone.filter(([, value]) => value !== null))
    return others.length === 0 && isDeepStrictEqual(kept, before.conditions ?? {})
      ? []
      : [`the amendments of the grant ${after.id} do not tell its conditions before`]
  })

/** A grant that an owner consented to is removed only when what remains of it is stored. */
export const endedGrantsRemain: Law = ({ written, database }) =>
  written.flatMap(({ kind, before, after }) => {
    if (kind !== 'grant' || before === undefined || after !== undefined) return []
    const isKept = database.peek('ended-grant', before.id) !== undefined
    return (before as Grant).consent === undefined || isKept
      ? []
      : [`nothing remains of the grant ${before.id}`]
  })

/** Written for the items that the simulated clients request, in this order of generality. */
function isWithin(narrow: TokenItem, wide: TokenItem): boolean {
  const [most, least] = [wide.limits ?? {}, narrow.limits ?? {}]
  return (
    narrow.label === wide.label &&
    narrow.type === wide.type &&
    narrow.actions.every((action) => wide.actions.includes(action)) &&
    (wide.identifier === undefined || wide.identifier === narrow.identifier) &&
    most.interval === least.interval &&
    (['debitAmount', 'receiveAmount'] as const).every((name) => {
      const [maximum, value] = [most[name]?.value, least[name]?.value]
      if (maximum === undefined) return true
      return value !== undefined && BigInt(value) <= BigInt(maximum)
    })
  )
}

/** Payments need an owner's consent: one whose approval has begun, and whose denial was never confirmed. */
export const nobodyPaysWithoutConsent: Law = (change) =>
  writesOf<Grant>(change, 'grant').flatMap(({ before, after }) => {
    const needsConsent = after.requested.some(({ type }) => type === 'outgoing-payment')
    if (!needsConsent || after.granted === undefined || before?.granted !== undefined) return []
    const entry = change.journal.grants.find(({ id }) => id === after.id)
    if (after.consent === undefined || entry === undefined || entry.decided.approving === 0) {
      return [`the grant ${after.id} was approved although no owner approved it`]
    }
    return entry.decided.denied ? [`the grant ${after.id} was approved after its denial`] : []
  })

/** A token that was replaced is never the token of its grant again. */
export function noTokenComesBack(): Law {
  const past = new Map<string, Set<string>>()
  return (change) =>
    writesOf<Grant>(change, 'grant').flatMap(({ before, after }) => {
      const current = (after.tokens ?? []).map(({ hash }) => hash)
      const hashes = past.get(after.id) ?? new Set()
      past.set(after.id, hashes)
      for (const { hash } of before?.tokens ?? []) if (!current.includes(hash)) hashes.add(hash)
      return current.some((hash) => hashes.has(hash))
        ? [`a replaced token of the grant ${after.id} is its token again`]
        : []
    })
}

/** One change of a grant rotates or revokes one token, and leaves the others as they are. */
export const tokensChangeAlone: Law = (change) =>
  writesOf<Grant>(change, 'grant').flatMap(({ before, after }) => {
    if (before?.tokens === undefined) return []
    const { tokens = [] } = after
    const labels = tokens.map(({ label }) => label)
    const changed = before.tokens.filter(
      ({ label, hash, manage, expiresAt, revokedAt }) =>
        !tokens.some(
          (token) =>
            token.label === label &&
            token.hash === hash &&
            token.manage === manage &&
            token.expiresAt === expiresAt &&
            token.revokedAt === revokedAt,
        ),
    )
    if (changed.length > 1) return [`${changed.length} tokens of ${after.id} changed at once`]
    return new Set(labels).size < labels.length || labels.length !== before.tokens.length
      ? [`the grant ${after.id} has not one token for each label`]
      : []
  })
