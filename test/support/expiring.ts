/**
 * Creates what expires soon. An attempt that reaches the server only after that instant is repeated with more
 * time ahead, so that a slow machine takes longer and does not fail.
 */
export async function expiringSoon<Result>(
  create: (expiresAt: string) => Promise<Result>,
): Promise<{ readonly expiresAt: number; readonly created: Result }> {
  for (let aheadMs = 2_000; ; aheadMs *= 4) {
    const expiresAt = Date.now() + aheadMs
    try {
      return { expiresAt, created: await create(new Date(expiresAt).toISOString()) }
    } catch (error) {
      if (Date.now() < expiresAt) throw error
    }
  }
}
