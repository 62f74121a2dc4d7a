/** When every life and every interval begins: Saturday, 21 November 2026, noon. */
export const birth = Date.UTC(2026, 10, 21, 12)
