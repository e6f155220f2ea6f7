// Starts oidc-provider, with its development pages for sign-in and consent, and prints its issuer.
import { createServer } from "node:http";
import { pathToFileURL } from "node:url";

const { MODULE, CLIENT_ID, CLIENT_SECRET, REDIRECT_URI, LOGOUT_URI } = process.env;
const { default: Provider } = await import(pathToFileURL(MODULE));

const configuration = {
  clients: [{
    client_id: CLIENT_ID,
    client_secret: CLIENT_SECRET,
    redirect_uris: [REDIRECT_URI],
    post_logout_redirect_uris: [LOGOUT_URI],
  }],
  claims: { openid: ["sub", "groups"], email: ["email", "email_verified"], profile: ["name"] },
  conformIdTokenClaims: false,
  cookies: { keys: ["not secret"] },
  findAccount: (_context, id) => ({
    accountId: id,
    claims: () => ({
      sub: id,
      email: `${id}@example.com`,
      email_verified: true,
      name: "Grace Hopper",
      groups: ["staff", "tapgate-admins"],
    }),
  }),
  pkce: { required: () => true },
};

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  server.on("request", new Provider(issuer, configuration).callback());
  console.log(issuer);
});
