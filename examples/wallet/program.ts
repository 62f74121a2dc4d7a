import { type Program, type ProgramOptions, runWith, standardOutput } from 'open-payments-programs'
import type {
  DeliveredEvent,
  EventHandler,
  FailedDelivery,
  RefusalReport,
} from 'open-payments-server'
import { webhookSender } from '../webhooks/sender.js'
import { eventLine } from './event-line.js'
import { requireFreePort } from './port-error.js'
import { readSettings, type Settings } from './settings.js'
import { startWallet } from './start.js'
import { openStorage } from './storage.js'
import type { Wallet } from './wallet.js'

const stopWithinMs = 9_000

const usage = `Usage: npm start

Serves the example wallet on http://localhost:3000 until it is interrupted. It takes its settings from the environment:

  PORT                         the port
  BASE_URL                     the public origin; http://localhost:PORT by default
  ADAPTER                      express (default), fastify or hono
  DATABASE_URL                 a PostgreSQL, instead of an embedded one that forgets
  DATA_DIR                     the directory in which the embedded one keeps its data
  FEE, SETTLE                  what a payment costs, and whether it is sent automatically
  PEERS, ILP_TOKEN, ILP_ADDRESS  other wallets
  WEBHOOK_URL, WEBHOOK_SECRET  where events are posted
  ROLE, AUTH_URL, RESOURCE_SERVER_KEY  the servers in two processes
  OUTBOUND_TIMEOUT_MS          how long other servers may take

examples/wallet/README.md says more.

  -h, --help                   print this text
  --version                    print the version

Exit code: 0 after SIGINT or SIGTERM, 1 if the wallet cannot start, 2 for arguments.
`

const program = {
  name: 'npm start --',
  usage,
  manifest: new URL('../../package.json', import.meta.url),
  options: {},
} as const satisfies Program<ProgramOptions>

/** Runs the wallet until it is asked to stop, and ends the process. */
export function runWallet(args: readonly string[]): Promise<number> {
  return runWith(program, args, standardOutput, async () => {
    try {
      await serve()
      process.exit(0)
    } catch (error) {
      // Errors that the operator can fix need no stack trace. A refused connection has a code and no message.
      const { message, code } = error as NodeJS.ErrnoException
      console.error(message || code || error)
      process.exit(1)
    }
  })
}

async function serve(): Promise<void> {
  const settings = readSettings(process.env)
  console.log(`The example wallet starts: it opens ${placeOf(settings)}.`)
  await requireFreePort(settings.port)
  const onEvent = eventHandler(settings)
  const asked = askedToStop()
  const storage = await Promise.race([openStorage(settings), asked])
  // No request has been served yet, so nothing has to finish.
  if (storage === undefined) return
  try {
    const running = await startWallet({ ...settings, storage, onEvent, onUndelivered, onRefusal })
    announce(settings, running.wallet, storage.description)
    await asked
    await running.stop()
  } finally {
    await storage.close()
  }
}

/** Says which storage the wallet opens, which can take several seconds. */
function placeOf({ databaseUrl, dataDir }: Settings): string {
  if (databaseUrl !== undefined) return 'PostgreSQL'
  return dataDir === undefined ? 'a new database of PGlite' : `PGlite in ${dataDir}`
}

/** Resolves at the first signal to stop. The process then has a limited time to finish. */
function askedToStop(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT'] as const) {
      process.once(signal, () => {
        setTimeout(() => process.exit(1), stopWithinMs).unref()
        resolve()
      })
    }
  })
}

function eventHandler({ webhook }: Settings): EventHandler {
  const send = webhook === undefined ? undefined : webhookSender(webhook)
  return async (event: DeliveredEvent, delivery) => {
    await send?.(event, delivery)
    console.log(eventLine(event))
  }
}

function onUndelivered({ event, attempt, error, retryAt }: FailedDelivery): void {
  const reason = error instanceof Error ? error.message : error
  const next = retryAt === undefined ? 'set aside' : `again at ${new Date(retryAt).toISOString()}`
  console.error(`${event.type} ${event.id} was not delivered (${attempt}): ${reason}; ${next}`)
}

/**
 * Clients only see status 503. The reason, such as an unreachable process or another key, is for the
 * operator.
 */
function onRefusal({ refusal, reason }: RefusalReport): void {
  if (refusal === 'introspection_unavailable')
    console.error(`tokens cannot be introspected: ${reason}`)
}

function announce(
  { adapter, baseUrl, role, settle, rail }: Settings,
  wallet: Wallet,
  storage: string,
): void {
  const authUrl = role?.authUrl ?? baseUrl
  const what = role === undefined ? '' : ` in the role ${role.name}`
  console.log(`The example wallet is ready${what} (${adapter}).`)
  if (role === undefined) console.log(`  start at              ${baseUrl}/`)
  console.log(`  data                  ${storage}`)
  console.log(`  authorization server  ${authUrl}/auth`)
  console.log(`  resource server       ${baseUrl}`)
  for (const { url, assetCode } of wallet.accounts) {
    console.log(`  wallet address        ${url} (${assetCode})`)
  }
  if (role?.name !== 'resource') console.log(`  connected apps        ${authUrl}/grants`)
  if (role === undefined) console.log(`  keys of apps          ${baseUrl}/keys`)
  if (role?.name === 'auth') return
  const path = `${baseUrl}/ledger/outgoing-payments/{id}/settle`
  console.log(
    `  payments are sent     ${settle === 'auto' ? 'automatically' : `with POST ${path}`}`,
  )
  console.log(`  ILP address           ${rail.ilpAddress}`)
  for (const { ilpAddress, url } of rail.peers) {
    console.log(`  ILP peer              ${ilpAddress}, at ${url}`)
  }
  console.log(`  report funds at       ${baseUrl}/ledger/transfers`)
  if (role === undefined) return
  console.log(`  for ROLE=auth, set    RESOURCE_SERVER_KEY=${wallet.resourceServerKey}`)
}
