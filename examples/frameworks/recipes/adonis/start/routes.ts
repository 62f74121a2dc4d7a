import { text } from 'node:stream/consumers'
import router from '@adonisjs/core/services/router'

router.get('/', () => '<h1>own page</h1>')
router.post('/own', ({ request }) => text(request.request))
