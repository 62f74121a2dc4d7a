import type {
  DeliveredEvent,
  EventHandler,
  FailedDelivery,
  RefusalReport,
} from 'open-payments-server'
import { webhookSender } from '../webhooks/sender.js'
import { eventLine } from './event-line.js'
import { readSettings, type Settings } from './settings.js'
import { startWallet } from './start.js'
import { openStorage } from './storage.js'
import type { Wallet } from './wallet.js'

const stopWithinMs = 9_000

async function main(): Promise<void> {
  const settings = readSettings(process.env)
  const onEvent = eventHandler(settings)
  const asked = askedToStop()
  const storage = await Promise.race([openStorage(settings), asked])
  // Nobody has been served yet, so that there is nothing to finish.
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

/** Resolves at the first signal to stop; from then on there is so much time and no more. */
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

/** Clients hear of 503 alone: that the other process is away, or was given another key, is for the operator. */
function onRefusal({ refusal, reason }: RefusalReport): void {
  if (refusal === 'introspection_unavailable') console.error(`no token can be checked: ${reason}`)
}

function announce(
  { adapter, baseUrl, role, settle, rail }: Settings,
  wallet: Wallet,
  storage: string,
): void {
  const authUrl = role?.authUrl ?? baseUrl
  const what = role === undefined ? '' : ` in the role ${role.name}`
  console.log(`The example wallet is ready${what} (${adapter}).`)
  console.log(`  keeps its data in     ${storage}`)
  console.log(`  authorization server  ${authUrl}/auth`)
  console.log(`  resource server       ${baseUrl}/op`)
  for (const { url, assetCode } of wallet.accounts) {
    console.log(`  wallet address        ${url} (${assetCode})`)
  }
  if (role?.name !== 'resource') console.log(`  owners look at        ${authUrl}/grants`)
  if (role?.name === 'auth') return
  const path = `${baseUrl}/ledger/outgoing-payments/{id}/settle`
  console.log(`  payments are sent     ${settle === 'auto' ? 'by themselves' : `by ${path}`}`)
  console.log(`  packets arrive at     ${rail.ilpAddress}`)
  for (const { ilpAddress, url } of rail.peers) {
    console.log(`  packets leave to      ${ilpAddress}, at ${url}`)
  }
  console.log(`  funds arrive at       ${baseUrl}/ledger/transfers`)
  if (role === undefined) return
  console.log(`  ROLE=auth needs       RESOURCE_SERVER_KEY=${wallet.resourceServerKey}`)
}

try {
  await main()
  process.exit(0)
} catch (error) {
  // What the operator can put right needs no stack; a refused connection has a code and no message.
  const { message, code } = error as NodeJS.ErrnoException
  console.error(message || code || error)
  process.exit(1)
}
