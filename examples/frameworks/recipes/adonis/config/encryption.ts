import { randomBytes } from 'node:crypto'
import { defineConfig, drivers } from '@adonisjs/core/encryption'

export default defineConfig({
  default: 'main',
  list: { main: drivers.chacha20({ id: 'main', keys: [randomBytes(32).toString('hex')] }) },
})
