import type { NodeHandler } from 'open-payments-server/express'
import { serveInFront } from '../in-front.js'

/** Imports what a framework has built. */
const built = (path: string) => import(new URL(path, import.meta.url).href)

/** How each framework gives its application as a handler of Node.js. Each has POST /own, which returns its body. */
const applications: Readonly<Record<string, () => Promise<NodeHandler>>> = {
  sveltekit: async () => (await built('sveltekit/build/handler.js')).handler,
  astro: async () => (await built('astro/dist/server/entry.mjs')).handler,
  nuxt: async () => (await built('nuxt/.output/server/index.mjs')).listener,
  async hapi() {
    const { default: hapi } = await import('@hapi/hapi')
    const server = hapi.server()
    server.route({ method: 'GET', path: '/', handler: () => '<h1>own page</h1>' })
    const options = { payload: { parse: false } } as const
    server.route({ method: 'POST', path: '/own', options, handler: ({ payload }) => payload })
    await server.initialize()
    return (request, response) => void server.listener.emit('request', request, response)
  },
}

const [name = ''] = process.argv.slice(2)
const application = await applications[name]?.()
if (application === undefined) throw new Error(`one of ${Object.keys(applications).join(', ')}`)
serveInFront(application, Number(process.env['PORT'] ?? 3000))
