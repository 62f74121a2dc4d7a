// #region koa
import Koa from 'koa'
import { toExpress } from 'open-payments-server/express'
import { createWallet } from './wallet.js'

const port = Number(process.env['PORT'] ?? 3000)
const { handle } = createWallet(`http://localhost:${port}`)
const serve = toExpress(handle)

const app = new Koa()
app.use(async (context, next) => {
  if (context.path === '/health') return next()
  context.respond = false // the handler sends the response itself
  serve(context.req, context.res, (error) => context.app.emit('error', error, context))
})
app.use((context) => {
  context.body = 'ok'
})
app.listen(port)
// #endregion koa
