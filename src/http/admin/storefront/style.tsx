/** @jsxImportSource preact */
import * as actions from "../../../actions/style.ts";
import { hasAccess, MAX_STYLE_BYTES } from "../../../domain/shop.ts";
import { sentence } from "../../../lib/text.ts";
import type { AdminDependencies, AdminPage, AdminRequest, Handler } from "../admin-request.ts";
import {
  Confirm,
  Copyable,
  FieldError,
  Form,
  fieldAttributes,
  Link,
  PreviewButton,
  PreviewFrame,
} from "../components.tsx";

const STYLE = "/style";
const PREVIEW = "preview";

/** A refused form: the typed text and the reason. */
interface RefusedStyle {
  source: string;
  error: string;
}

export const showStyle: Handler = (request, dependencies) => stylePage(request, dependencies);

export const saveStyle: Handler = async (request, dependencies) => {
  const source = request.form.get("source") ?? "";
  const saved = await actions.saveStyle(dependencies.store, { ...request, source }, dependencies.now());
  if ("refused" in saved)
    return stylePage(request, dependencies, { source, error: sentence(actions.styleRefusal(saved)) });
  return { to: STYLE, notices: [{ text: "Saved. Visitors may see the former style for up to a day." }] };
};

export const askToClearStyle: Handler = async () => {
  const content = (
    <Confirm id="clear-style" action={`${STYLE}/clear`} button="Remove the style" back={STYLE}>
      <p>Remove the style of the widget? Its CSS is deleted. This can't be undone.</p>
    </Confirm>
  );
  return { title: "Remove the widget's style", tab: STYLE, trail: { to: STYLE, name: "Widget style" }, content };
};

export const clearStyle: Handler = async (request, { store, now }) => {
  await actions.clearStyle(store, request, now());
  return { to: STYLE, notices: [{ text: "The style is removed." }] };
};

/** Shows a sample widget with the saved style. */
export const previewSaved: Handler = async ({ shop }, { store }) =>
  preview((await store.styles.find(shop.id))?.source ?? "");

/** Shows a sample widget with the typed style, without saving it. */
export const previewTyped: Handler = async ({ form }) => preview(form.get("source") ?? "");

async function stylePage(
  { shop }: AdminRequest,
  { store, address }: AdminDependencies,
  refused?: RefusedStyle,
): Promise<AdminPage> {
  const stored = await store.styles.find(shop.id);
  const content = (
    <>
      <p>
        This CSS styles the storefront widget. It can't change anything outside the widget, and it can't load anything.
        To use it, link this address in your theme:
      </p>
      <Copyable
        id="address"
        value={`${address()}/storefront/${shop.domain}/widget.css`}
        name="the address of the stylesheet"
      />
      <Form id="style" action={STYLE}>
        <fieldset disabled={!hasAccess(shop.plan)}>
          <label for="source">CSS</label>
          <textarea
            id="source"
            name="source"
            class="code"
            rows={16}
            spellcheck={false}
            autocomplete="off"
            {...fieldAttributes(refused?.error, "source-error", "source-help")}
          >
            {/* Browsers drop a newline at the start of a textarea, so an extra newline is added. */}
            {`\n${refused?.source ?? stored?.source ?? ""}`}
          </textarea>
          <FieldError id="source-error" error={refused?.error} />
          <small id="source-help">
            At most {MAX_STYLE_BYTES / 1024} KiB.{" "}
            <a href="/docs/storefront">What is allowed, and a style to begin with</a>
          </small>
          <div class="actions">
            <button type="submit" id="save-style">
              Save
            </button>
            <PreviewButton id="preview-style" frame={PREVIEW} from={`${STYLE}/preview`}>
              Preview
            </PreviewButton>
            {stored === undefined ? null : (
              <Link id="clear" to={`${STYLE}/clear`}>
                Remove the style
              </Link>
            )}
          </div>
        </fieldset>
      </Form>
      <h2>Preview</h2>
      <p>This is a sample widget with the saved style. The button Preview shows what you typed, without saving it.</p>
      <PreviewFrame name={PREVIEW} title="A sample widget" from={`${STYLE}/preview`} />
    </>
  );
  return { title: "Widget style", tab: STYLE, status: refused === undefined ? 200 : 422, content };
}

/**
 * Style of the page around the widget. If a merchant's style reached outside the widget, this page would look
 * different.
 */
const SHOP_STYLE = "body { margin: 1rem; background: #fff; color: #222; font: 16px/1.5 system-ui, sans-serif }";

/**
 * Makes the document of the frame. The styles are linked as `data:` URLs, because CSS in a style element could end the
 * element.
 */
async function preview(source: string) {
  const scoped = await actions.scopeStyle(source);
  const css = "css" in scoped ? scoped.css : "";
  const frame = (
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>A sample widget</title>
        <link rel="stylesheet" href={dataUrl(SHOP_STYLE)} />
        <link rel="stylesheet" href={dataUrl(css)} />
      </head>
      <body>
        {"refused" in scoped ? (
          <p id="refused" role="alert">
            This style is refused. {sentence(actions.styleRefusal(scoped))}
          </p>
        ) : null}
        <p id="before">Your shop's page, before the widget.</p>
        <SampleWidget />
        <p id="after">Your shop's page, after the widget.</p>
      </body>
    </html>
  );
  return { frame };
}

function dataUrl(css: string): string {
  return `data:text/css;charset=utf-8;base64,${Buffer.from(css).toString("base64")}`;
}

/** A widget like the example in docs/storefront.md. */
function SampleWidget() {
  return (
    <div class="sds-widget">
      <h2 class="title">Your subscription</h2>
      <p class="next">
        Next order: <time dateTime="2026-12-01">1 December 2026</time>
      </p>
      <ul class="lines">
        <li class="line">
          <span class="name">Coffee, 500 g</span> <span class="price">$14.00</span>
        </li>
        <li class="line">
          <span class="name">Filters, 100</span> <span class="price">$4.50</span>
        </li>
      </ul>
      <label class="field">
        Gift note <input class="input" type="text" value="Enjoy!" />
      </label>
      <p class="actions" id="manage">
        <button type="button" class="button">
          Skip the next order
        </button>{" "}
        <a class="link" href="#manage">
          Manage
        </a>
      </p>
    </div>
  );
}
