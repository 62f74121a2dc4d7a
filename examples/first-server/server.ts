// #region first-server
import express from 'express'
import { createAuthorizationServer, memoryStore, remoteClientKeys } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'

const port = Number(process.env['PORT'] ?? 3000)
const grantEndpoint = `http://localhost:${port}/auth`

const auth = createAuthorizationServer({
  grantEndpoint,
  consentUrl: `http://localhost:${port}/consent`,
  store: memoryStore(), // for a first try; PostgreSQL or your own database later
  clientKeys: remoteClientKeys(), // fetches the keys that clients publish
  onRefusal: ({ refusal, reason }) => console.warn(refusal, reason), // the reason, which clients do not receive
})

const app = express().use('/auth', toExpress(auth.handle))
app.listen(port, () => console.log(`Serving grants at ${grantEndpoint}`))
// #endregion first-server
