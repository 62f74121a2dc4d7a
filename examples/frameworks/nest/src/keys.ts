import { createHmac } from 'node:crypto'

/** Derives a key for a purpose from the secret, which is the same in every process. */
export function keyFor(purpose: string): Uint8Array {
  const { WALLET_SECRET: secret = '' } = process.env
  if (secret.length < 32) throw new Error('WALLET_SECRET needs 32 random characters')
  return createHmac('sha256', secret).update(purpose).digest()
}
