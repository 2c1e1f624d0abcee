/** @jsxImportSource preact */
import type { ComponentChildren } from "preact";
import { sampleEvent } from "../../domain/events/sample.ts";
import type { Resource } from "../../domain/resources.ts";
import { sampleRows } from "../openapi/sample-rows.ts";
import { Code } from "./code.tsx";
import { readCommand } from "./components.tsx";
import { RESOURCE_NAMES } from "./resource-names.ts";

/**
 * Replaces a section that has no rows yet. `children` say what the section will show and what to do next. A labelled
 * sample follows. It has no links, and no data of the shop.
 */
export function EmptySection({ id, children, sample }: { id: string; children: ComponentChildren; sample: Sample }) {
  return (
    <>
      <p id={id} class="empty">
        {children}
      </p>
      <SampleFigure id={`${id}-sample`} sample={sample} />
    </>
  );
}

export function SampleFigure({ id, sample: { caption, content } }: { id: string; sample: Sample }) {
  return (
    <figure class="sample" id={id}>
      <figcaption>
        <span class="badge">Sample</span> {caption}
      </figcaption>
      {content}
    </figure>
  );
}

export interface Sample {
  caption: string;
  content: ComponentChildren;
}

export const SAMPLE_EVENT: Sample = {
  caption: "Your endpoint gets a body like this when an order is charged.",
  content: <Code id="sample-event" label="Sample" text={JSON.stringify(sampleEvent("order.charged"), null, 2)} />,
};

/** A sample call with an API key. @param address base URL of the API */
export function sampleCall(address: string): Sample {
  const command = readCommand({ value: "cad_pk_…", address });
  return {
    caption: "With a key, this command reads a subscription:",
    content: <Code id="sample-call" label="Sample" text={command} />,
  };
}

export const SAMPLE_FIELD: Sample = {
  caption: "The API gives a field “Gift note” with each subscription:",
  content: (
    <Code
      id="sample-field"
      label="Sample"
      text={JSON.stringify({ customFields: { gift_note: "Happy birthday!" } }, null, 2)}
    />
  ),
};

/** A sample row of a resource, as the API serves it. */
export function sampleData(resource: Resource): Sample {
  return {
    caption: `The API gives each ${RESOURCE_NAMES[resource].one.toLowerCase()} like this.`,
    content: <Code id="sample-row" label="Sample" text={JSON.stringify(sampleRows()[resource], null, 2)} />,
  };
}
