SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#api",
  deepLinking: true,
  filter: true,
  docExpansion: "list",
  validatorUrl: null,
});
