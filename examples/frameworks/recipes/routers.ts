import { text } from 'node:stream/consumers'
import connect from 'connect'
import express from 'express'
import { H3, toNodeHandler } from 'h3'
import Koa from 'koa'
import type { NodeHandler } from 'open-payments-server/express'
import polka from 'polka'
import restify from 'restify'

const page = '<h1>own page</h1>'

/** Small applications, each with a page at / and POST /own, which returns its body, as handlers of Node.js. */
export const routers: Readonly<Record<string, () => NodeHandler>> = {
  express() {
    const parsed = express.text({ type: '*/*', limit: '1mb' })
    const app = express()
    app.get('/', (_request, response) => void response.send(page))
    app.post('/own', parsed, (request, response) => void response.send(request.body))
    return app
  },
  connect() {
    const app = connect()
    app.use('/own', async (request, response) => void response.end(await text(request)))
    return app.use((_request, response) => void response.end(page))
  },
  koa() {
    const app = new Koa()
    app.use(async (context) => {
      context.body = context.path === '/own' ? await text(context.req) : page
    })
    return app.callback()
  },
  polka() {
    const app = polka()
    app.get('/', (_request, response) => void response.end(page))
    app.post('/own', async (request, response) => void response.end(await text(request)))
    return app.handler as NodeHandler
  },
  restify() {
    const app = restify.createServer()
    app.get('/', async (_request, response) => void response.sendRaw(page))
    app.post('/own', async (request, response) => void response.sendRaw(await text(request)))
    return (request, response) => void app.server.emit('request', request, response)
  },
  h3() {
    const app = new H3()
    app.get('/', () => page)
    app.post('/own', (event) => event.req.text())
    return toNodeHandler(app) as NodeHandler
  },
}
