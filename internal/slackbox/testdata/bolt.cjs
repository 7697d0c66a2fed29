// Runs a bolt app as its users write one, against the local Slack. What happens is
// said on stdout, one JSON object a line, for the Go test that started it.
const { App, LogLevel } = require('@slack/bolt');

const say = (what, more = {}) => process.stdout.write(`${JSON.stringify({ what, ...more })}\n`);

const app = new App({
  token: process.env.BOT_TOKEN,
  appToken: process.env.APP_TOKEN,
  socketMode: true,
  logLevel: LogLevel.ERROR,
  clientOptions: { slackApiUrl: process.env.SLACK_API_URL },
});

app.event('app_mention', async ({ event, context, say: reply }) => {
  const answer = await reply({ text: `heard: ${event.text}`, thread_ts: event.ts });
  say('mention', { user: event.user, ts: event.ts, answered: answer.ts, bot: context.botUserId });
});

app.message('weather', async ({ message, client }) => {
  await client.reactions.add({ channel: message.channel, timestamp: message.ts, name: 'sunny' });
  const who = await client.users.info({ user: message.user });
  const thread = await client.conversations.replies({ channel: message.channel, ts: message.ts });
  say('message', { name: who.user.name, ts: message.ts, messages: thread.messages.length });
});

app.command('/agents', async ({ command, ack, respond }) => {
  await ack({ response_type: 'ephemeral', text: `ask: ${command.text}` });
  await respond({ response_type: 'in_channel', text: 'said later' });
  say('command', { user: command.user_name });
});

app.action('go', async ({ ack, body, action }) => {
  await ack();
  say('action', { user: body.user.id, value: action.value });
});

app.event('file_shared', async () => {});
app.event('reaction_added', async ({ event }) => say('reaction', { name: event.reaction }));

app.message('picture', async ({ message, client }) => {
  const up = await client.files.uploadV2({
    channel_id: message.channel, thread_ts: message.ts, filename: 'a.txt', file: Buffer.from('hello file'), initial_comment: 'here',
  });
  say('upload', { ok: up.ok });
});

app.error(async (error) => say('error', { message: String(error) }));

(async () => {
  const client = app.receiver.client;
  for (const state of ['connected', 'reconnecting', 'disconnected']) client.on(state, () => say(state));
  await app.start();
  say('started');
})();

process.stdin.resume();
process.stdin.on('end', async () => {
  await app.stop();
  process.exit(0);
});
