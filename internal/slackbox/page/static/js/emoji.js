// The common emoji by Slack's names. A name that is not here is shown as :name:,
// which is also how a person finds out what an app really sent.

const table = `
+1 👍 thumbsup|-1 👎 thumbsdown|x ❌|white_check_mark ✅|heavy_check_mark ✔️|eyes 👀|heart ❤️|tada 🎉|rocket 🚀|fire 🔥
pray 🙏|raised_hands 🙌|clap 👏|wave 👋|ok_hand 👌|muscle 💪|point_up ☝️|point_right 👉|point_left 👈|point_down 👇
smile 😄|smiley 😃|grinning 😀|grin 😁|joy 😂|rofl 🤣|slightly_smiling_face 🙂|wink 😉|blush 😊|heart_eyes 😍|sunglasses 😎
thinking_face 🤔 thinking|neutral_face 😐|cry 😢|sob 😭|sweat_smile 😅|open_mouth 😮|scream 😱|confused 😕|zzz 💤|sleeping 😴
100 💯|sparkles ✨|star ⭐|zap ⚡|bulb 💡|warning ⚠️|no_entry ⛔|no_entry_sign 🚫|octagonal_sign 🛑 stop_sign|question ❓|exclamation ❗
hourglass ⌛|hourglass_flowing_sand ⏳|alarm_clock ⏰|stopwatch ⏱️|calendar 📅 date|pushpin 📌|round_pushpin 📍|paperclip 📎|link 🔗|lock 🔒|unlock 🔓|key 🔑
memo 📝 pencil|page_facing_up 📄|file_folder 📁|books 📚|mag 🔍|wrench 🔧|hammer 🔨|gear ⚙️|package 📦|bug 🐛|robot_face 🤖|construction 🚧
computer 💻|speech_balloon 💬|bell 🔔|mega 📣 loudspeaker|email 📧|inbox_tray 📥|outbox_tray 📤|bar_chart 📊|chart_with_upwards_trend 📈
coffee ☕|pizza 🍕|cake 🍰|beers 🍻|sunny ☀️|cloud ☁️|rainbow 🌈|earth_africa 🌍|dog 🐶|cat 🐱|unicorn_face 🦄|ghost 👻|skull 💀
arrow_up ⬆️|arrow_down ⬇️|arrow_left ⬅️|arrow_right ➡️|arrows_counterclockwise 🔄|heavy_plus_sign ➕|heavy_minus_sign ➖
red_circle 🔴|large_green_circle 🟢|large_yellow_circle 🟡|large_blue_circle 🔵|white_circle ⚪|black_circle ⚫|checkered_flag 🏁|steering_wheel 🛞|racing_car 🏎️`;

const byName = new Map();
const names = [];
for (const entry of table.trim().split(/[|\n]/)) {
  const [name, char, ...aliases] = entry.trim().split(' ');
  names.push(name);
  for (const n of [name, ...aliases]) byName.set(n, char);
}

/** The character of a shortcode (skin tones ignored), or null. */
export function emojiChar(name) {
  return byName.get(String(name).split('::')[0]) ?? null;
}

/** What a reaction or shortcode is shown as. */
export function emojiText(name) {
  return emojiChar(name) ?? `:${name}:`;
}

/** Names that contain the words, the best known first. */
export function findEmoji(query) {
  const want = query.trim().toLowerCase().replace(/^:|:$/g, '');
  const begins = names.filter((n) => n.startsWith(want));
  return [...begins, ...names.filter((n) => !n.startsWith(want) && n.includes(want))];
}

/** What Slack takes as an emoji's name. */
export function validEmojiName(name) {
  return /^[a-z0-9_+\-']{1,100}$/.test(name);
}
