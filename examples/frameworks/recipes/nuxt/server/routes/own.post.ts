export default defineEventHandler((event) => readRawBody(event))
