import { randomBytes } from 'node:crypto'
import { webhookReceiver } from './receiver.js'

const { PORT = '4000', WEBHOOK_SECRET } = process.env
const secret = WEBHOOK_SECRET ?? `whsec_${randomBytes(32).toString('base64')}`

const receiver = webhookReceiver(secret, ({ id, type, timestamp, data }) => {
  console.log(timestamp, type, id, data)
})

receiver.listen(Number(PORT), 'localhost', () => {
  console.log('Waiting for webhooks. Start the wallet with:')
  console.log(`  WEBHOOK_URL=http://localhost:${PORT} WEBHOOK_SECRET=${secret} npm start`)
})
