'use strict';
Redoc.init('/api/schema/?format=json', { disableSearch: false, hideDownloadButton: false }, document.getElementById('docs'));
