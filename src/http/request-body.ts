import { concatenate } from '../util/bytes.js'
import { bodyBytesMax } from './message.js'

/**
 * How far a body over the limit is read and discarded before the response, in bytes and in milliseconds: a proxy or
 * client that is still writing often does not read a response, and takes the end of the connection for a failure.
 */
const readBytesMax = 1024 * 1024
const discardMsMax = 1_000

/** A stream of bytes. */
export interface FetchBody {
  readonly locked: boolean
  getReader(): { read(): Promise<{ readonly done: boolean; readonly value?: Uint8Array }> }
}

/** Collects the bytes of a request body as they arrive. */
export interface BodyCollector {
  /** Takes the next bytes. Discards them beyond the limit. */
  take(chunk: Uint8Array): void
  /** The body has ended. */
  end(): void
  /** The body will not end: nothing is collected. */
  abandon(): void
}

/**
 * Creates a collector. It calls `done` once: with the whole body, or with more than `bodyBytesMax` bytes of a longer
 * one, when that has ended, exceeds 1 MiB, or goes on for more than 1 s after it exceeded the limit. The caller then
 * reads no further, and does not cancel the body: what a cancelled request body does to the connection, or to the
 * process, differs between runtimes.
 *
 * @example
 * ```ts
 * import type { IncomingMessage } from 'node:http'
 * import { collectBody } from 'open-payments-server/adapter'
 *
 * export function bodyOf(request: IncomingMessage): Promise<Uint8Array> {
 *   return new Promise((resolve) => {
 *     const collector = collectBody(resolve)
 *     request.on('data', collector.take).once('end', collector.end).once('close', collector.abandon)
 *   })
 * }
 * ```
 */
export function collectBody(done: (body: Uint8Array) => void): BodyCollector {
  const kept: Uint8Array[] = []
  let keptLength = 0
  let readLength = 0
  let isOver = false
  let timer: ReturnType<typeof setTimeout> | undefined
  const abandon = () => {
    isOver = true
    clearTimeout(timer)
  }
  const end = () => {
    if (isOver) return
    abandon()
    done(concatenate(kept, keptLength))
  }
  return {
    take(chunk) {
      readLength += chunk.length
      if (keptLength <= bodyBytesMax) {
        kept.push(chunk)
        keptLength = readLength
      }
      if (readLength > readBytesMax) end()
      else if (readLength > bodyBytesMax && !isOver) timer ??= setTimeout(end, discardMsMax)
    },
    end,
    abandon,
  }
}

/**
 * Reads a body of the Fetch API as `collectBody` describes. Rejects if the stream fails before.
 */
export async function readBodyStream(stream: FetchBody): Promise<Uint8Array> {
  // The reader keeps its lock, so that nothing else cancels what was not read.
  const reader = stream.getReader()
  let isDone = false
  let collector!: BodyCollector
  const body = new Promise<Uint8Array>((resolve) => {
    collector = collectBody((bytes) => {
      isDone = true
      resolve(bytes)
    })
  })
  const reading = async (): Promise<Uint8Array> => {
    while (!isDone) {
      const { done, value } = await reader.read()
      if (done || value === undefined) collector.end()
      else collector.take(value)
    }
    return body
  }
  try {
    return await Promise.race([body, reading()])
  } finally {
    collector.abandon()
  }
}
