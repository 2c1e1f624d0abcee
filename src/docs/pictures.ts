import deliveriesDark from "./pictures/deliveries-dark.webp" with { type: "file" };
import deliveriesLight from "./pictures/deliveries-light.webp" with { type: "file" };
import deliveryDark from "./pictures/delivery-dark.webp" with { type: "file" };
import deliveryLight from "./pictures/delivery-light.webp" with { type: "file" };
import overviewDark from "./pictures/overview-dark.webp" with { type: "file" };
import overviewLight from "./pictures/overview-light.webp" with { type: "file" };

/** The files of the pictures in the guides, by their names there. `scripts/screenshots` makes them. */
export const PICTURES: Readonly<Record<string, string>> = {
  "overview-light.webp": overviewLight,
  "overview-dark.webp": overviewDark,
  "deliveries-light.webp": deliveriesLight,
  "deliveries-dark.webp": deliveriesDark,
  "delivery-light.webp": deliveryLight,
  "delivery-dark.webp": deliveryDark,
};
