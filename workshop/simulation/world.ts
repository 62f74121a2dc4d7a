import type { PriceRequest, Pricing } from '../../src/index.js'
import { type KeyPair, keyFromText } from '../../test/support/keys.js'
import { listPrice } from '../../test/support/spending.js'
import { birth } from './birth.js'
import { type Climate, connect } from './connection.js'
import { contract, createDatabase, type Database, type DatabaseRules } from './database.js'
import { createDraw } from './draw.js'
import { drawWeather } from './faults.js'
import { createHolds, type Holds } from './holds.js'
import { type ClientEntry, createJournal, type Journal } from './journal.js'
import { createLedger, type Ledger } from './laws/ledger.js'
import { refusesOnlyForAReason } from './laws/responses.js'
import { createNetwork, type Network } from './network.js'
import { introspectRemotely } from './remote.js'
import { createProcess, createScheduler, type Process, type Scheduler } from './scheduler.js'
import { type ServerProcess, startServer, type WalletMistake } from './servers.js'
import type { Trace } from './trace.js'

/** A mistake to plant: in the store, or in each process of the wallet. */
export interface Mistake extends WalletMistake {
  readonly database?: Partial<DatabaseRules>
}

/** Everything that exists in one life. */
export interface World {
  readonly scheduler: Scheduler
  readonly climate: Climate
  readonly database: Database
  readonly network: Network
  readonly journal: Journal
  readonly ledger: Ledger
  /** The funds that the host holds. */
  readonly holds: Holds
  readonly servers: ServerProcess[]
  /** The processes of the clients. */
  readonly clients: readonly { readonly process: Process; readonly entry: ClientEntry }[]
  /** Sees the store as it is, without faults and with a correct clock. */
  readonly auditor: ServerProcess
  /** Ends a server process without warning, and starts another in its place. */
  restart(server: ServerProcess): void
  /** Whether the resource servers introspect at another server, so that no commit guards a grant. */
  readonly isRemote: boolean
  /** Which keys sign for a grant. */
  readonly keyBinding: 'published' | 'bound'
  /** Publishes another key of a client in place of the current one. */
  replaceKey(client: ClientEntry): void
}

const serverNames = ['server-1', 'server-2']
const clientNames = ['shop', 'cafe']

export function createWorld(seed: string, trace: Trace, mistake: Mistake = {}): World {
  const draw = createDraw(seed)
  const climate: Climate = { weather: drawWeather(draw), isPeaceful: false, faults: 0 }
  const journal = createJournal()
  const scheduler = createScheduler(draw, trace, birth, climate.weather, (text) =>
    journal.breaches.push(text),
  )
  const rules = { ...contract, ...mistake.database }
  const database: Database = createDatabase(rules, (written, commit) => ledger.see(written, commit))
  const isRemote = createDraw(`${seed} grants`).chance(30)
  const ledger = createLedger({ database, journal, scheduler, climate, isRemote }, () => holds)
  const skew = () => draw.below(2 * climate.weather.skewMaxMs + 1) - climate.weather.skewMaxMs
  const keyBinding = createDraw(`${seed} keys`).chance(50) ? 'published' : 'bound'
  const published = new Map<string, KeyPair>()
  const holds = createHolds(scheduler, climate, journal, database, () => auditor)
  let incarnations = 0

  const clients = clientNames.map((name) => {
    const walletAddress = `https://${name}.example`
    const entry = { name, walletAddress, key: keyOf(name, 1), keys: 1, names: 0 }
    published.set(walletAddress, entry.key)
    return { process: createProcess(name, skew()), entry }
  })

  async function findKey({ walletAddress, kid }: { walletAddress: string; kid: string }) {
    const key = published.get(walletAddress)
    return key?.kid === kid ? { kid, x: key.x } : undefined
  }

  /** A port of the host, which fails as often as the weather says. */
  async function port<Value>(label: string, effect: () => Value): Promise<Awaited<Value>> {
    if (draw.chance(climate.weather.portFailsPercent)) {
      climate.faults += 1
      throw await scheduler.turn(`${label} fails`, () => new Error(`${label} failed`))
    }
    return await (climate.isPeaceful ? effect() : scheduler.turn(label, effect))
  }

  function start(name: string): ServerProcess {
    const process = createProcess(`${name}.${++incarnations}`, skew())
    const pricing: Pricing = {
      price: (request: PriceRequest) => port('price', () => listPrice(request)),
    }
    return startServer(scheduler, process, `${seed} ${process.name}`, {
      store: connect(scheduler, database, climate),
      clientKeys: { find: (query) => port('find key', () => findKey(query)) },
      pricing,
      mayPay: holds.mayPay,
      remote: isRemote ? introspectRemotely(scheduler, climate, () => servers) : undefined,
      keyBinding,
      mistake,
    })
  }

  const servers = serverNames.map(start)
  const auditor: ServerProcess = startServer(
    scheduler,
    createProcess('auditor'),
    `${seed} auditor`,
    {
      store: {
        load: async (keys) => database.load(keys),
        list: async (query) => database.list(query),
        due: async (kind, namespace, before, limit) =>
          database.due({ kind, namespace, before, limit }),
        commit: async (commit) => database.commit(commit),
        remove: async (records) => database.remove(records),
      },
      clientKeys: { find: findKey },
      pricing: { price: async (request) => listPrice(request) },
      mayPay: () => ({ ok: true }),
      keyBinding,
    },
  )
  const network = createNetwork(
    scheduler,
    climate,
    () => servers,
    (...seen) => refusesOnlyForAReason(journal, climate, scheduler.now(), ...seen),
  )

  return {
    scheduler,
    climate,
    database,
    network,
    journal,
    ledger,
    holds,
    servers,
    clients,
    auditor,
    isRemote,
    keyBinding,
    restart(server) {
      const [name = ''] = server.process.name.split('.')
      trace.note(`${server.process.name} dies`)
      scheduler.kill(server.process)
      network.hangUp(server.process)
      servers[servers.indexOf(server)] = start(name)
    },
    replaceKey(client) {
      client.keys += 1
      client.key = keyOf(client.name, client.keys)
      published.set(client.walletAddress, client.key)
    },
  }
}

const keys = new Map<string, KeyPair>()

/** The same keys in each life: to derive one takes as long as some requests. */
function keyOf(name: string, number: number): KeyPair {
  const kid = `${name}-${number}`
  const key = keys.get(kid) ?? keyFromText(kid, kid)
  keys.set(kid, key)
  return key
}
