import { openShop } from '../../examples/demo/shop.js'
import { published } from '../../test/support/clients/all.js'
import { runSequence } from '../../test/support/clients/sequence.js'
import { clientTable, verdictsOf } from '../../test/support/clients/table.js'
import { startDeployment } from '../../test/support/official-client.js'

/** Runs the sequence of every published client against the created wallet, and returns the table of statuses. */
export async function writtenClientTable(): Promise<string> {
  const running = await startDeployment('express')
  const shop = await openShop()
  try {
    const verdicts = new Map()
    const expiresAt = BigInt(Date.now() + 86_400_000) * 1_000_000n + 456_789n
    for (const dialect of published) {
      const options = { dialect, running, shop, expiresAt, metadata: { invoice: 'INV-1' } }
      verdicts.set(dialect.name, verdictsOf(await runSequence(options)))
    }
    return clientTable(verdicts)
  } finally {
    await running.stop()
    shop.stop()
  }
}
