import { createAuthenticatedClient, OpenPaymentsClientError } from '@interledger/open-payments'
import { createWallet } from 'create-open-payments-server/wallet/wallet'
import {
  freePort,
  type Program,
  type ProgramOptions,
  runWith,
  standardOutput,
} from 'open-payments-programs'
import { openEmbedded } from '../created-wallet/embedded-database.js'
import { change } from './changes.js'
import { confirm } from './confirming.js'
import { consent } from './consent.js'
import { getPaid } from './receiving.js'
import { reserve } from './reserving.js'
import { openShop, type ShopKey } from './shop.js'
import { pay } from './spending.js'
import { currentStep, tell, title } from './story.js'
import { payAcross } from './two-wallets.js'
import { type AdapterName, startDemoWallet } from './wallet.js'

const usage = `Usage: npm run demo

Shows each step of Open Payments, with the published client and the wallet of npm create on free ports.

  ADAPTER              the framework, in the environment: express (default), fastify or hono
  OUTBOUND_TIMEOUT_MS  how long a wallet waits for others, also in the environment
  -h, --help           print this text
  --version            print the version

Exit code: 0 if everything worked, 1 if a step failed, 2 for arguments.
`

const program = {
  name: 'npm run demo --',
  usage,
  manifest: new URL('../../package.json', import.meta.url),
  options: {},
} as const satisfies Program<ProgramOptions>

/** Runs the demo, and resolves to its exit code. */
export function runDemo(args: readonly string[]): Promise<number> {
  return runWith(program, args, standardOutput, async () => {
    try {
      await tellAll()
      return 0
    } catch (error) {
      console.error(`\nStep ${currentStep()} failed: ${words(error)}`)
      return 1
    }
  })
}

/**
 * The whole flow: the published client, with response validation enabled, uses a wallet built on this
 * library. Exits with an error at the first unexpected result.
 */
async function tellAll(): Promise<void> {
  const adapter = (process.env['ADAPTER'] ?? 'express') as AdapterName
  const shop = await openShop()
  // A busy machine needs more than the default.
  const outboundTimeoutMs = Number(process.env['OUTBOUND_TIMEOUT_MS'] ?? 2_000)
  const settings = { adapter, outboundTimeoutMs }
  const baseUrl = `http://localhost:${await freePort()}`
  const database = await openEmbedded()
  // The demo says when the wallet works between requests.
  const work = () => ({ stop: async () => {} })
  const { wallet, stop } = await startDemoWallet({
    ...settings,
    baseUrl,
    database,
    create: (...created) => ({ wallet: createWallet(...created), work }),
  })
  const connect = ({ keyId, privateKey }: ShopKey) =>
    createAuthenticatedClient({
      walletAddressUrl: shop.walletAddress,
      keyId,
      privateKey,
      validateResponses: true,
      requestTimeoutMs: 5 * outboundTimeoutMs, // a quote of another wallet can take four times as long
    })
  const client = await connect(shop)
  const scene = { client, shop, baseUrl }
  title(`A wallet on ${adapter}, at ${baseUrl}`)
  tell('the app', `${shop.walletAddress}, with the key ${shop.keyId}`)
  try {
    title('Alice agrees')
    const { token, session } = await consent(scene)
    title('Bob is paid')
    await getPaid(scene, wallet)
    title('The app pays')
    const last = await pay(scene, wallet, token)
    title('The grant changes')
    const renewed = await change({ ...scene, connect, session }, last)
    title('Alice confirms')
    await confirm({ ...scene, client: renewed }, wallet)
    title('The ledger decides')
    await reserve({ client: renewed, shop }, settings)
    title('Two wallets')
    await payAcross({ client: renewed, shop }, settings)
  } finally {
    await stop()
    await database.close()
    shop.stop()
  }
  title('Everything worked as expected.')
}

/** Says what happened, in words: the refusal of a wallet, what was expected, or why a request failed. */
function words(error: unknown): string {
  if (error instanceof OpenPaymentsClientError) {
    const { status, code, message, description, validationErrors = [] } = error
    const answer = status === undefined ? [] : [`the wallet responded with ${status} ${code ?? ''}`]
    return [...answer, message, description, ...validationErrors].filter(Boolean).join(': ')
  }
  const { message, cause } = error as Error
  return cause instanceof Error ? `${message}: ${cause.message}` : message
}
