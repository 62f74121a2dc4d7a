import type { GrantEntry } from './journal.js'
import type { World } from './world.js'

/** Asks the auditor which tokens of a grant are active now. */
export async function activeTokens(
  world: World,
  { id, tokens, key }: GrantEntry,
): Promise<string[]> {
  const { scheduler, auditor } = world
  const active: string[] = []
  async function introspect(): Promise<void> {
    for (const { value } of tokens) {
      const answer = await auditor.auth.introspect({ accessToken: value, keyid: key.kid })
      if (answer.active) active.push(value)
    }
  }
  await scheduler.perform(auditor.process, `introspects ${tokens.length} tokens of ${id}`, () => {
    void introspect()
  })
  return active
}

/** A grant has at most one live token of a label at any instant, and no token that has ended is active again. */
export async function auditTokens(world: World): Promise<void> {
  const { journal, ledger } = world
  for (const id of ledger.takeChangedGrants()) {
    const grant = journal.grants.find((each) => each.id === id)
    if (grant === undefined || grant.tokens.length === 0) continue
    const active = await activeTokens(world, grant)
    const labels = grant.tokens.flatMap(({ value, label }) =>
      active.includes(value) ? [label] : [],
    )
    if (new Set(labels).size < labels.length) {
      journal.breaches.push(`${id} has ${active.length} live tokens`)
    }
    for (const { value, dead } of grant.tokens) {
      if (dead !== undefined && active.includes(value)) {
        journal.breaches.push(`a token of ${id} is active, although it was ${dead}`)
      }
    }
  }
}
