import { Ignitor } from '@adonisjs/core'
import hapi from '@hapi/hapi'
import { createRequestListener } from '@react-router/node'
import type { NodeHandler } from 'open-payments-server/express'
import { inFront } from '../in-front.js'
import { routers } from './routers.js'

const port = Number(process.env['PORT'] ?? 3000)
const serve = (application: NodeHandler) => inFront(application, port).listen(port)

/** Imports what a framework has built. */
const built = (path: string) => import(new URL(path, import.meta.url).href)

/** How a server starts in front of each framework, whose application has POST /own, which returns its body. */
const starts: Readonly<Record<string, () => Promise<unknown>>> = {
  sveltekit: async () => serve((await built('sveltekit/build/handler.js')).handler),
  astro: async () => serve((await built('astro/dist/server/entry.mjs')).handler),
  nuxt: async () => serve((await built('nuxt/.output/server/index.mjs')).listener),
  async 'react-router'() {
    const build = await built('react-router/build/server/index.js')
    serve(createRequestListener({ build }))
  },
  async adonis() {
    const root = new URL('adonis/', import.meta.url)
    const importer = (path: string) => import(new URL(path, root).href)
    const server = new Ignitor(root, { importer }).httpServer()
    await server.start((application) => inFront(application, port))
  },
  async hapi() {
    const server = hapi.server()
    server.route({ method: 'GET', path: '/', handler: () => '<h1>own page</h1>' })
    const options = { payload: { parse: false } } as const
    server.route({ method: 'POST', path: '/own', options, handler: ({ payload }) => payload })
    await server.initialize()
    serve((request, response) => void server.listener.emit('request', request, response))
  },
}

const [name = ''] = process.argv.slice(2)
const [start, router] = [starts[name], routers[name]]
if (router !== undefined) serve(router())
else if (start !== undefined) await start()
else throw new Error(`one of ${Object.keys({ ...starts, ...routers }).join(', ')}`)
