import { connect } from 'node:tls'
import { addressIn, internet, type Network, type SendFetch } from 'open-payments-programs'
import { keepingLoneQuery } from './lone-query.js'

/** The network functions that the doctor uses. */
export interface DoctorNetwork extends Network {
  /** Resolves to the number of whole days for which the certificate of an https origin remains valid. */
  certificateDays(origin: string, timeoutMs: number): Promise<number>
}

export const doctorInternet: DoctorNetwork = {
  ...internet,
  fetch: keepingLoneQuery(internet.fetch),
  certificateDays,
}

/**
 * After a failure, further requests with the same method, origin and first segment of the path, with or without a body
 * as that one, fail at once.
 */
export function failingAtOnce(send: SendFetch): SendFetch {
  const failed = new Map<string, unknown>()
  return async (input, init) => {
    const { origin, pathname } = new URL(String(input))
    const kind = init?.body == null ? 'without a body' : 'with a body'
    const place = `${init?.method ?? 'GET'} ${origin}/${pathname.split('/')[1]} ${kind}`
    if (failed.has(place)) throw failed.get(place)
    try {
      return await send(input, init)
    } catch (error) {
      failed.set(place, error)
      throw error
    }
  }
}

const dayMs = 24 * 60 * 60 * 1000

function certificateDays(origin: string, timeoutMs: number): Promise<number> {
  const { hostname, port } = new URL(origin)
  const host = hostname.replace(/^\[|\]$/g, '')
  const servername = addressIn(hostname) === undefined ? { servername: host } : {}
  return new Promise((resolve, reject) => {
    const socket = connect(
      { host, port: Number(port || 443), ...servername, rejectUnauthorized: false },
      () => {
        const { valid_to } = socket.getPeerCertificate()
        socket.destroy()
        resolve(Math.floor((Date.parse(valid_to) - Date.now()) / dayMs))
      },
    )
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error('timeout')))
    socket.on('error', reject)
  })
}
