/** The number of rounds of each fault. `FAULT_ROUNDS=3` is the short form. */
export const rounds = Number(process.env['FAULT_ROUNDS'] ?? 20)

const given = process.env['TEST_SEED'] ?? '1'

/** The seed of all choices. `TEST_SEED=random` takes a new one, which a failure prints. */
export const seed = given === 'random' ? Date.now() % 1_000_000_000 : Number(given)

/** The number of histories on a store that misreports commits: on memory, and on PostgreSQL. */
export const histories = { memory: Math.min(300, rounds * 40), postgres: Math.min(100, rounds * 8) }
