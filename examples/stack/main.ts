import { setTimeout as sleep } from 'node:timers/promises'
import { metrics } from '@opentelemetry/api'
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus'
import { MeterProvider } from '@opentelemetry/sdk-metrics'
import Fastify from 'fastify'
import { consumeEvents, runSweeps } from 'open-payments-server'
import { toFastify } from 'open-payments-server/fastify'
import { observeBacklog } from 'open-payments-server/opentelemetry'
import { checkTables } from 'open-payments-server/postgres'
import { openDatabase } from './database.js'
import { loginPage } from './login.js'
import { paymentsOn } from './payments.js'
import { walletOn } from './wallet.js'

const { PORT = '3000', HOST = 'localhost', DRAIN_MS = '5000' } = process.env
// Opens no port of its own.
const exporter = new PrometheusExporter({ preventServerStart: true })
metrics.setGlobalMeterProvider(new MeterProvider({ readers: [exporter] }))

const app = Fastify({ logger: true })
const { pool, db } = openDatabase()
const { wallet, pages } = walletOn(pool, db, app.log)
const { auth, resources } = wallet

let isStopping = false
app.get('/ready', async (_request, reply) => {
  const check = await checkTables(pool)
  return reply.code(check.ok && !isStopping ? 200 : 503).send(check)
})
// For Prometheus alone: let the proxy refuse this path.
app.get('/metrics', (request, reply) => {
  reply.hijack()
  exporter.getMetricsRequestHandler(request.raw, reply.raw)
})
app.register(toFastify(loginPage), { prefix: '/login' })
app.register(toFastify(pages.consent), { prefix: '/consent' })
app.register(toFastify(pages.connectedApps), { prefix: '/apps' })
app.register(toFastify(pages.around(wallet.handle))) // every other path

const onError = (err: unknown) => app.log.error({ err }, 'background work failed')
const handler = paymentsOn(db, resources)
const consumer = consumeEvents([auth.events, resources.events], handler, { onError })
const sweeps = runSweeps([auth, resources], { onError })
observeBacklog({ authorizationServer: auth.events, resourceServer: resources.events })

async function stop() {
  if (isStopping) return
  isStopping = true // until the load balancer sends nothing more
  await sleep(Number(DRAIN_MS))
  await app.close() // answers what has arrived
  await Promise.all([consumer.stop(), sweeps.stop()])
  await pool.end() // last: all of them use it
}
process.once('SIGTERM', stop).once('SIGINT', stop)

await app.listen({ port: Number(PORT), host: HOST })
