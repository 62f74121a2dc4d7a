import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect as connectToNats } from '@nats-io/transport-node'
import { connect } from 'amqplib'
import type { EventHandler } from 'open-payments-server'
import { Pool } from 'pg'
import PgBoss from 'pg-boss'
import { toJetStream } from './nats.js'
import { toPgBoss } from './pg-boss.js'
import { toRabbitMq } from './rabbitmq.js'

/** A broker for the tests: what they publish, and what is in it. */
export interface Broker {
  readonly publish: EventHandler
  /** Lets messages reach a place where they stay. */
  bind(): Promise<unknown>
  /** Resolves to the messages in the broker, oldest first. */
  received(): Promise<readonly { readonly id: string; readonly subject: string }[]>
  close(): Promise<unknown>
}

const name = 'test-payments'
const read = (content: Uint8Array) => JSON.parse(new TextDecoder().decode(content))

export async function openRabbitMq(url: string): Promise<Broker> {
  const connection = await connect(url)
  const channel = await connection.createConfirmChannel()
  await channel.assertExchange(name, 'topic', { durable: true })
  await channel.assertQueue(name, { durable: true })
  await channel.purgeQueue(name)
  await channel.unbindQueue(name, name, '#')
  return {
    publish: toRabbitMq(channel, name),
    bind: () => channel.bindQueue(name, name, '#'),
    async received() {
      const found = []
      for (;;) {
        const message = await channel.get(name, { noAck: true })
        if (message === false) return found
        found.push(read(message.content))
      }
    },
    async close() {
      await channel.deleteQueue(name)
      await channel.deleteExchange(name)
      await connection.close()
    },
  }
}

export async function openNats(servers: string): Promise<Broker> {
  const connection = await connectToNats({ servers })
  const { streams } = await jetstreamManager(connection)
  await streams.delete(name).catch(() => false)
  return {
    publish: toJetStream(jetstream(connection)),
    // In nanoseconds: as long as an event is repeated by default.
    bind: () => streams.add({ name, subjects: ['payments.>'], duplicate_window: 5 * 3_600e9 }),
    async received() {
      const found = []
      const { state } = await streams.info(name)
      for (let seq = 1; seq <= state.messages; seq++) {
        const message = await streams.getMessage(name, { seq })
        if (message !== null) found.push(read(message.data))
      }
      return found
    },
    async close() {
      await streams.delete(name)
      await connection.close()
    },
  }
}

export async function openPgBoss(connectionString: string): Promise<Broker> {
  const pool = new Pool({ connectionString })
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const schema = `boss_${process.pid}`
  const boss = new PgBoss({ connectionString, schema, supervise: false, schedule: false })
  boss.on('error', () => {})
  await boss.start()
  await boss.createQueue(name)
  return {
    publish: toPgBoss(pool, boss, name),
    bind: () => pool.query('CREATE TABLE queued_events (id text PRIMARY KEY)'),
    async received() {
      const text = `SELECT data FROM ${schema}.job WHERE name = $1 ORDER BY created_on`
      const { rows } = await pool.query(text, [name])
      return rows.map(({ data }) => data)
    },
    async close() {
      await boss.stop({ graceful: false, wait: true })
      await pool.query(`DROP SCHEMA ${schema} CASCADE`)
      await pool.query('DROP TABLE IF EXISTS queued_events')
      await pool.end()
    },
  }
}
