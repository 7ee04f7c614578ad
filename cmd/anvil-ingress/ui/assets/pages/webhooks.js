// webhooks.js -- how forges tell this project of pushes.

import { call, get } from '../api.js';
import { button, confirm, working } from '../dialog.js';
import { fill, freshId, h } from '../dom.js';
import { menu } from '../menu.js';
import { failure } from '../parts.js';
import { toast, toastOf } from '../toast.js';
import { PROVIDERS } from '../words.js';
import { deliveriesList } from './deliveries.js';
import { showSecret } from './secret.js';
import { addWebhook } from './webhook_add.js';

class Webhooks {
	#context;
	#path;
	#open = new Set();	// Providers whose deliveries are shown.
	#body = h('div', {}, h('p', { class: 'waiting', role: 'status' }, 'Loading webhooks…'));
	#add;

	constructor(context, path, project) {
		this.#context = context;
		this.#path = `${path}/webhooks`;
		this.webhooks = [];
		this.project = project;
		this.#add = button('Add Webhook', () => addWebhook(this));
		this.node = h('section', {}, h('div', { class: 'title-row' }, h('h2', {}, 'Webhooks'),
			this.#add), this.#body);
	}

	urlOf(provider) {
		return `${this.#path}/${provider}`;
	}

	async load() {
		try {
			const { webhooks } = await get(this.#path, 'webhooks',
				{ signal: this.#context.signal });

			this.webhooks = webhooks;
			this.#draw();
		} catch (error) {
			if (!this.#context.left)
				fill(this.#body, failure(error, () => this.load()));
		}
	}

	#draw() {
		this.#add.hidden = this.webhooks.length === Object.keys(PROVIDERS).length;
		if (this.webhooks.length === 0)
			fill(this.#body, h('p', { class: 'empty-line' },
				'No webhook yet: runs are started by hand only.'));
		else
			fill(this.#body, h('ul', { class: 'webhooks' },
				this.webhooks.map((w) => this.#card(w))));
	}

	#switch(webhook, name) {
		const input = h('button', { type: 'button', role: 'switch', class: 'switch',
			'aria-checked': String(webhook.enabled), 'aria-label': `Enable ${name} webhook`,
			onclick: async () => {
				input.disabled = true;
				try {
					await call('PUT', this.urlOf(webhook.provider), 'webhook',
						{ body: { enabled: !webhook.enabled } });
					toast(`The webhook for ${name} is ${webhook.enabled ? 'off' : 'on'}.`);
				} catch (error) {
					toastOf(error);
				}
				await this.load();
			} });

		return input;
	}

	#rotate(webhook, name) {
		confirm('Rotate Secret', `The current secret stops working at once: deliveries from ` +
			`${name} are refused until the new one is set there.`, 'Rotate Secret', async () => {
			const { secret } = await call('POST',
				`${this.urlOf(webhook.provider)}/rotate-secret`, 'secret');

			await this.load();
			return () => showSecret(`New secret for ${name}`, secret);
		}, toastOf);
	}

	#remove(webhook, name) {
		confirm('Delete Webhook', `Pushes to ${name} start no more runs, and the secret is ` +
			'deleted for good. Runs that were accepted go on.', 'Delete Webhook', async () => {
			await call('DELETE', this.urlOf(webhook.provider), null);
			toast(`The webhook for ${name} was deleted.`);
			await this.load();
		}, toastOf);
	}

	#deliveries(webhook, list) {
		const shown = this.#open.has(webhook.provider);
		const toggle = h('button', { type: 'button', class: 'quiet', 'aria-controls': list.id,
			'aria-expanded': String(shown), onclick: () => {
				list.hidden = !list.hidden;
				toggle.setAttribute('aria-expanded', String(!list.hidden));
				if (list.hidden)
					this.#open.delete(webhook.provider);
				else
					this.#open.add(webhook.provider);
			} }, `Deliveries (${webhook.recentDeliveries.length})`);

		list.hidden = !shown;
		return toggle;
	}

	#card(webhook) {
		const name = PROVIDERS[webhook.provider] ?? webhook.provider;
		const list = h('div', { id: freshId('deliveries') }, deliveriesList(webhook,
			working('Refresh', () => this.load(), toastOf, 'small')));

		return h('li', { class: 'card webhook' },
			h('div', { class: 'webhook-top' },
				h('h3', {}, name),
				h('span', { class: webhook.enabled ? 'badge passed' : 'badge idle' },
					webhook.enabled ? 'Enabled' : 'Disabled'),
				webhook.config !== null && h('span', { class: 'slug' },
					webhook.config.instanceUrl),
				h('span', { class: 'push' }), this.#switch(webhook, name),
				this.#deliveries(webhook, list),
				menu('Actions', [
					{ label: 'Rotate Secret', run: () => this.#rotate(webhook, name) },
					{ label: 'Delete Webhook', run: () => this.#remove(webhook, name) },
				])),
			list);
	}
}

export function webhooksSection(context, path, project) {
	const webhooks = new Webhooks(context, path, project);

	webhooks.load();
	return webhooks.node;
}
