import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'

/** A registry of npm with the packages of a folder. All others are at another registry. */
export interface Registry {
  readonly url: string
  close(): void
}

/** @param elsewhere the URL of the other registry, which ends with a slash. */
export async function startRegistry(tarballs: string, elsewhere: string): Promise<Registry> {
  const packed = new Map(
    readdirSync(tarballs).map((file) => {
      const args = ['-xOf', join(tarballs, file), 'package/package.json']
      const manifest = JSON.parse(execFileSync('tar', args, { encoding: 'utf8' }))
      return [manifest.name as string, { file, manifest }]
    }),
  )
  const server = createServer((request, response) => {
    const path = decodeURIComponent((request.url ?? '').slice(1))
    const found = packed.get(path)
    if (found !== undefined) {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(documentOf(found.file, found.manifest)))
    } else if (path.startsWith('tarballs/')) {
      response.end(readFileSync(join(tarballs, path.slice('tarballs/'.length))))
    } else {
      response.writeHead(302, { location: elsewhere + (request.url ?? '').slice(1) }).end()
    }
  })

  function documentOf(file: string, manifest: { readonly name: string; readonly version: string }) {
    const { name, version } = manifest
    const digest = createHash('sha512')
      .update(readFileSync(join(tarballs, file)))
      .digest('base64')
    const dist = { tarball: `${url}tarballs/${file}`, integrity: `sha512-${digest}` }
    return {
      name,
      'dist-tags': { latest: version },
      versions: { [version]: { ...manifest, dist } },
    }
  }

  server.listen(0, 'localhost')
  await once(server, 'listening')
  const url = `http://localhost:${(server.address() as AddressInfo).port}/`
  return { url, close: () => void server.close() }
}
