/** The number of rounds of each fault, and the seed. `FAULT_ROUNDS=3` is the short form. */
export const rounds = Number(process.env['FAULT_ROUNDS'] ?? 20)

export const seed = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000_000)

/** The number of histories on a store that misreports commits: on memory, and on PostgreSQL. */
export const histories = { memory: Math.min(300, rounds * 40), postgres: Math.min(100, rounds * 8) }
