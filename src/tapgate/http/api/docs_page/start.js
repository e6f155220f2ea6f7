"use strict";

SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  deepLinking: true,
  filter: true,
  docExpansion: "none",
  tryItOutEnabled: true,
  validatorUrl: null,
  requestInterceptor: (request) => window.tapgateCredentials.authorize(request),
});
