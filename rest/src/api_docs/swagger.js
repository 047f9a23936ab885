'use strict';
// Credentials are typed into the page and forgotten with it.
SwaggerUIBundle({
  url: '/api/schema/?format=json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  persistAuthorization: false,
  tryItOutEnabled: true,
  validatorUrl: null,
});
