import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { answerBrowser } from '../src/finish-page.js'

test.each([
  ['returned', 200, 'You can close this page.'],
  ['unknown', 404, 'This page does not exist.'],
] as const)(
  'a browser that has %s gets a page that loads and runs nothing',
  async (name, status, text) => {
    const server = createServer((_, response) => answerBrowser(response, name))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const response = await fetch(`http://127.0.0.1:${port}`)
    const body = await response.text()
    server.close()
    expect([response.status, body]).toEqual([status, expect.stringContaining(text)])
    const policy = response.headers.get('content-security-policy') ?? ''
    const [, nonce = ''] = /^default-src 'none'; style-src 'nonce-([^']+)'; /.exec(policy) ?? []
    expect(body).toContain(`<style nonce="${nonce}">`)
    expect(body).not.toMatch(/<script|<link|<img|url\(/)
  },
)
