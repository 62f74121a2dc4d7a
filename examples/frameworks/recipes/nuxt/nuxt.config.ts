export default defineNuxtConfig({
  compatibilityDate: '2026-11-01',
  nitro: { preset: 'node-listener' },
  telemetry: false,
})
