// webhook_add.js -- the dialog that makes a webhook: first whose, then how.

import { call } from '../api.js';
import { Dialog, button } from '../dialog.js';
import { fill, freshId, h } from '../dom.js';
import { Field, Form, copyField } from '../form.js';
import { outside } from '../parts.js';
import { toast } from '../toast.js';
import { PROVIDERS } from '../words.js';
import { showSecret } from './secret.js';

const HOW = {
	github: { proof: 'Signs each delivery with the secret.', event: 'Just the push event',
		headers: 'X-Hub-Signature-256', secret: 'Secret',
		guide: 'https://docs.github.com/webhooks/using-webhooks/creating-webhooks' },
	gitlab: { proof: 'Sends the secret token along with each delivery.', event: 'Push events',
		headers: 'X-Gitlab-Token', secret: 'Secret token',
		guide: 'https://docs.gitlab.com/user/project/integrations/webhooks/' },
	gitea: { proof: 'Signs each delivery with the secret; Forgejo does the same.',
		event: 'Push events', headers: 'X-Gitea-Signature', secret: 'Secret',
		guide: 'https://docs.gitea.com/usage/webhooks' },
};

function parse(url) {
	try {
		return new URL(url);
	} catch {
		return null;
	}
}

function recommended(repoUrl) {
	const host = parse(repoUrl)?.hostname ?? '';

	if (host === 'github.com')
		return 'github';
	if (host.includes('gitlab'))
		return 'gitlab';
	return /gitea|forgejo|codeberg/.test(host) ? 'gitea' : null;
}

// The origin of the repository; Gitea may live beneath a path.
function instanceOf(provider, repoUrl) {
	const url = parse(repoUrl);

	if (url === null || url.origin === 'null')
		return '';
	if (provider !== 'gitea')
		return url.origin;
	return url.origin + url.pathname.split('/').slice(0, -2).join('/');
}

function choices(section, chosen) {
	const group = freshId('provider');
	const advice = recommended(section.project.repoUrl);
	const exists = (p) => section.webhooks.some((w) => w.provider === p);
	const first = [advice, ...Object.keys(PROVIDERS)].find((p) => p !== null && !exists(p));

	chosen.provider = first;
	return h('fieldset', { class: 'choice stacked' }, h('legend', {}, 'Provider'),
		Object.entries(PROVIDERS).map(([p, name]) => {
			const id = freshId('choice');

			return h('div', { class: 'option' }, h('input', { type: 'radio', id, name: group,
				value: p, checked: p === first, disabled: exists(p),
				'data-first': p === first, 'aria-describedby': `${id}-help`,
				onchange: () => {
					chosen.provider = p;
				} }),
			h('label', { for: id }, name,
				p === advice && h('span', { class: 'badge passed' }, 'Recommended')),
			h('p', { class: 'help', id: `${id}-help` },
				exists(p) ? 'This project has one already.' : HOW[p].proof));
		}));
}

// What has to be entered in the forge.
function instructions(provider, deliveryUrl) {
	const how = HOW[provider];

	return [copyField('Payload URL', deliveryUrl),
		h('dl', { class: 'facts' },
			h('dt', {}, 'Method'), h('dd', {}, 'POST'),
			h('dt', {}, 'Content type'), h('dd', {}, h('code', {}, 'application/json')),
			h('dt', {}, 'Events'), h('dd', {}, how.event),
			h('dt', {}, 'Proof'), h('dd', {}, h('code', {}, how.headers))),
		h('p', {}, outside(how.guide, `How ${PROVIDERS[provider]} does it`))];
}

function deliveryUrl(section, provider) {
	const { ownerSlug, projectSlug } = section.project;
	const known = section.webhooks[0]?.deliveryUrl;

	// public_url is what the server says; before it has said it, what this page came from.
	if (known !== undefined)
		return known.replace(/\/hooks\/[^/]+\//, `/hooks/${provider}/`);
	return new URL(`api/public/hooks/${provider}/${ownerSlug}/${projectSlug}`,
		document.baseURI).href;
}

function bodyOf(provider, fields) {
	const body = { enabled: true };

	if (provider !== 'github')
		body.config = fields['config.instanceUrl'].value.trim() === '' ? null
			: { instanceUrl: fields['config.instanceUrl'].value };
	if (fields.secret.value !== '')
		body.secret = fields.secret.value;
	return body;
}

const WORDS = {
	encryption_not_configured: 'The server has no usable key, so it can keep no secret.',
	webhook_create_conflict: 'Somebody has just made this webhook.',
};

function secondStep(section, dialog, provider) {
	const fields = {};

	if (provider !== 'github')
		fields['config.instanceUrl'] = new Field('Instance URL', { inputmode: 'url',
			value: instanceOf(provider, section.project.repoUrl),
			optional: provider === 'gitlab' });
	fields.secret = new Field(HOW[provider].secret, { type: 'password', optional: true,
		autocomplete: 'new-password', first: true,
		help: 'Empty: one is made, and shown once.' });
	const form = new Form(fields, 'Create Webhook', async () => {
		const { generatedSecret } = await call('PUT', section.urlOf(provider), 'webhook',
			{ body: bodyOf(provider, fields) });

		dialog.close();
		if (generatedSecret === null)
			toast(`The webhook for ${PROVIDERS[provider]} was created.`);
		else
			showSecret(`Secret for ${PROVIDERS[provider]}`, generatedSecret);
		await section.load();
	}, { words: (error) => WORDS[error.code],
		more: instructions(provider, deliveryUrl(section, provider)),
		buttons: [button('Back', () => firstStep(section, dialog))] });

	fill(dialog.body, form.node);
	dialog.focus();
}

function firstStep(section, dialog) {
	const chosen = {};

	fill(dialog.body, choices(section, chosen), h('div', { class: 'buttons' },
		button('Close', () => dialog.close()),
		button('Next', () => secondStep(section, dialog, chosen.provider), 'primary')));
	dialog.focus();
}

export function addWebhook(section) {
	firstStep(section, new Dialog('Add Webhook', { wide: true }));
}
