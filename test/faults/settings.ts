/** How often each fault happens, and what chance begins with. `FAULT_ROUNDS=3` is the short form. */
export const rounds = Number(process.env['FAULT_ROUNDS'] ?? 20)

export const seed = Number(process.env['FAULT_SEED'] ?? Date.now() % 1_000_000_000)

/** How many histories are lived on a store that lies: on memory, and on PostgreSQL. */
export const histories = { memory: Math.min(300, rounds * 40), postgres: Math.min(100, rounds * 8) }
