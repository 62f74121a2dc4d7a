import type { Messages } from './messages.js'

const plurals = new Intl.PluralRules('ar')
function times(count: number): string {
  if (count === 1) return 'مرة واحدة'
  if (count === 2) return 'مرتين'
  return `${count} ${plurals.select(count) === 'few' ? 'مرات' : 'مرة'}`
}

export const arabic: Messages = {
  direction: 'rtl',
  comma: '، ',
  actions: {
    'incoming-payment': {
      create: 'إنشاء طلبات دفع لك',
      complete: 'إغلاق طلبات الدفع التي أنشأها',
      read: 'الاطلاع على طلبات الدفع التي أنشأها',
      'read-all': 'الاطلاع على كل طلبات الدفع في حسابك',
      list: 'عرض قائمة طلبات الدفع التي أنشأها',
      'list-all': 'عرض قائمة كل طلبات الدفع في حسابك',
    },
    'outgoing-payment': {
      create: 'دفع أموال من حسابك',
      read: 'الاطلاع على المدفوعات التي أجراها',
      'read-all': 'الاطلاع على كل المدفوعات من حسابك',
      list: 'عرض قائمة المدفوعات التي أجراها',
      'list-all': 'عرض قائمة كل المدفوعات من حسابك',
    },
    quote: {
      create: 'السؤال عن تكلفة عملية دفع',
      read: 'الاطلاع على عروض الأسعار التي طلبها',
      'read-all': 'الاطلاع على كل عروض الأسعار في حسابك',
    },
  },
  subject: (id) => `معرفة أنك ${id}`,
  limits: {
    onlyFor: (account) => `فقط للحساب ${account}`,
    onlyTo: (receiver) => `فقط إلى ${receiver}`,
    debited: (amount, period) => `يُخصم من حسابك ${amount} كحد أقصى ${period}`,
    arrives: (amount, period) => `يصل إلى المستلم ${amount} كحد أقصى ${period}`,
    unlimited: 'دون أي حد للمبلغ',
    atTheseTimes: (period) => `في هذه الأوقات: ${period}`,
    chosen: 'الذي تختاره',
    total: (items, account, limit) =>
      `عدد الأذونات التي تُجمع معًا للحساب ${account} هو ${items}، ومجموعها: ${limit}`,
  },
  periods: {
    inAll: 'في المجموع',
    every: {
      year: 'كل سنة',
      month: 'كل شهر',
      week: 'كل أسبوع',
      day: 'كل يوم',
      hour: 'كل ساعة',
      minute: 'كل دقيقة',
      second: 'كل ثانية',
    },
    everyDuration: (duration) => `في كل فترة (${duration})`,
    times,
    never: 'أي لن يحدث ذلك أبدًا',
    only: (from, until) => `من ${from} حتى ${until}`,
    first: (from, until) => `المرة الأولى من ${from} حتى ${until}`,
    last: (from, until) => `المرة الأخيرة من ${from} حتى ${until}`,
  },
  consent: {
    title: 'هل توافق؟',
    signedIn: (owner) => `لقد سجّلت الدخول باسم ${owner}.`,
    demo: 'هذا عرض توضيحي، لذلك سجّلت هذه الصفحة دخولك.',
    asks: (client) => `يريد التطبيق ${client}:`,
    token: (label) => `بالمفتاح الذي يسميه «${label}»:`,
    account: 'لأي حساب من حساباتك؟',
    noAccount: 'لا يناسب أي حساب من حساباتك، لذلك لا يمكنك إلا الرفض.',
    misfit: (account, asset, limit) =>
      `ليس ${account}: الحد بعملة ${limit}، وهذا الحساب بعملة ${asset}.`,
    returnsTo: (host) => `بعد ذلك ستعود إلى ${host}.`,
    returns: 'بعد ذلك، عُد إلى التطبيق الذي أرسلك إلى هنا.',
    approve: 'موافقة',
    deny: 'رفض',
  },
  apps: {
    title: 'التطبيقات المتصلة',
    none: 'لا يملك أي تطبيق حق الوصول إلى حسابك.',
    may: 'يُسمح لهذا التطبيق بما يلي:',
    since: (date) => `تمت الموافقة في ${date}.`,
    revoke: 'إلغاء الوصول',
    revokeApp: (client) => `إلغاء الوصول للتطبيق ${client}`,
    revoked: 'لم يعد للتطبيق حق الوصول.',
  },
  keys: {
    title: 'مفاتيح تطبيقاتك',
    signIn: 'هذا عرض توضيحي. أي حساب تريد أن ترى؟',
    purpose:
      'يمكن للتطبيق الذي يملك أحد هذه المفاتيح أن يطلب الوصول باسم حسابك. أضف فقط مفاتيح التطبيقات التي تستخدمها.',
    none: 'ليس لحسابك أي مفاتيح.',
    kid: (kid) => `معرّف المفتاح: ${kid}`,
    thumbprint: (beginning) => `البصمة: ${beginning}`,
    since: (date) => `أُضيف في ${date}.`,
    revoke: 'إلغاء المفتاح',
    revokeKey: (name) => `إلغاء المفتاح ${name}`,
    addTitle: 'إضافة مفتاح',
    account: 'الحساب',
    name: 'الاسم',
    key: 'المفتاح العام (JWK أو PEM)',
    newKid: 'معرّف المفتاح، إن أردت اختياره',
    add: 'إضافة',
    make: 'إنشاء مفتاح جديد في هذا المتصفح',
    made: 'حفظ متصفحك المفتاح الخاص. أعطِ الملف لتطبيقك فقط، فهذه المحفظة لا تملكه. أضف الآن المفتاح العام.',
    unsupported:
      'لا يستطيع هذا المتصفح إنشاء مثل هذه المفاتيح. أنشئ مفتاحًا بتطبيقك والصق مفتاحه العام.',
    added: 'تمت إضافة المفتاح.',
    revoked: 'تم إلغاء المفتاح.',
    refused: 'لم تتم إضافة المفتاح',
    problems: {
      name: 'أعطِ المفتاح اسمًا من 1 إلى 64 حرفًا.',
      known: 'لدى حسابك هذا المفتاح من قبل.',
      kidTaken: 'لدى حسابك مفتاح بهذا المعرّف من قبل.',
      full: 'لدى حسابك 20 مفتاحًا، وهو الحد الأقصى. ألغِ أحدها أولًا.',
    },
  },
  notices: {
    expired: ['فات الأوان', 'انتهت صلاحية هذا الطلب.'],
    answered: ['تم', 'لقد أجبت عن هذا الطلب من قبل. يمكنك إغلاق هذه الصفحة.'],
    done: ['تم', 'شكرًا لك. عُد إلى التطبيق الذي أرسلك إلى هنا.'],
    undecided: ['يُرجى اتخاذ قرار', 'اختر موافقة أو رفض.'],
    signedOut: ['لم تسجّل الدخول', 'افتح صفحة موافقة أولًا، فهي تسجّل دخولك.'],
    notYours: ['ليس طلبك', 'هذا الطلب يخص حسابًا آخر.'],
    unknown: ['غير معروف', 'هذه الصفحة غير موجودة.'],
    notApproved: ['غير معروف', 'لم توافق على هذا.'],
    failed: ['لم ينجح ذلك', 'لم تُقبل إجابتك. السبب هو:'],
    wrongMethod: ['غير مسموح', 'افتح هذه الصفحة في متصفح.'],
  },
}
