import { readFileSync } from 'node:fs'
import cors from 'cors'
import express from 'express'
import helmet from 'helmet'
import { createWallet, ilpPaymentMethods } from 'open-payments-server'
import { toExpress } from 'open-payments-server/express'
import {
  accounts,
  app,
  paymentDetailsKey,
  store,
} from 'open-payments-test-support/examples/integration'
import { describe, expect, test } from 'vitest'
import { checks } from '../src/doctor.js'
import { reportText } from '../src/report.js'
import { examined, findingOf, found } from './support/doctor.js'
import { findsOnly, mistakes } from './support/mistakes.js'

describe('the doctor, at the integration example', () => {
  test('finds nothing wrong', async () => {
    const { code, report } = await examined(app)
    expect(found(report)).toEqual([])
    expect([code, report.ok]).toEqual([0, true])
    expect(report.passed.length).toBeGreaterThan(25)
    expect(report.skipped.map(({ check }) => check)).toEqual(['grant-pending', 'consent-page'])
  })

  test('finds cors(), which answers discovery, and no harm in helmet before the servers', async () => {
    const { code, report } = await examined(express().use(helmet(), cors(), app))
    expect([code, found(report)]).toEqual([0, ['advice discovery']])
    expect(findingOf(report, 'discovery').fix).toContain('before app.use(cors())')
  })

  test('finds a proxy that removes the path prefix', async () => {
    const wallet = createWallet({
      baseUrl: 'https://wallet.example',
      resourceServerUrl: 'https://wallet.example/op',
      consentUrl: 'https://wallet.example/consent',
      store,
      walletAddresses: accounts,
      paymentMethods: ilpPaymentMethods({ addressPrefix: 'g.wallet', secret: paymentDetailsKey }),
    })
    const { code, report } = await examined(express().use(toExpress(wallet.handle)), {
      fault: (request, forward) => {
        const target = request.target.replace(/^\/(auth|op)\b/, '') || '/'
        return forward({ ...request, target })
      },
    })
    expect(code).toBe(1)
    expect(found(report)).toEqual(['problem signed-request'])
    const { fix, consequences } = findingOf(report, 'signed-request')
    for (const line of ["strippedPrefix: '/auth'", "strippedPrefix: '/op'", 'resources.handle']) {
      expect(fix).toContain(line)
    }
    expect(consequences[0]).toMatchObject({
      check: 'resource-server',
      what: expect.stringContaining('/op/incoming-payments'),
    })
    expect(consequences.at(-1)).toEqual({ check: 'incoming-get-query' })
    expect(reportText(report)).toMatch(
      /^ {2}also {2}found by resource-server; \d+ checks not possible\.$/m,
    )
  })

  test('finds a proxy that removes the prefix of a wallet address', async () => {
    const { report } = await examined(app, { args: ['https://wallet.example/wallet/alice/x'] })
    expect(found(report)).toEqual(['problem wallet-address'])
    const line =
      "strippedPrefix: '/wallet', // of all three servers, if a proxy removes this prefix"
    expect(findingOf(report, 'wallet-address').fix).toContain(line)
  })
})

test('the guide names every check', () => {
  const guide = readFileSync('packages/doctor/README.md', 'utf8')
  const unnamed = checks.map(({ name }) => name).filter((name) => !guide.includes(`\`${name}\``))
  expect(unnamed).toEqual([])
})

/** The others are in mistakes.long.test.ts. */
const some = mistakes.filter((_, index) => index % 8 === 0)

describe('the doctor finds one mistake', () => {
  test.each(some.map((one) => [one.name, one] as const))('%s', (_, one) => findsOnly(one))
})
